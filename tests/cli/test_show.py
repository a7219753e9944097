from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.program import Program
from tests.data.server.memory import MemoryCluster
from tocsin.cli.connection import connect
from tocsin.cli.show import brief, rows
from tocsin.errors import UnavailableError
from tocsin.model.messages import ChannelHealth, FeedHealth, Health
from tocsin.settings import DataSettings, Settings


def test_things_are_shown_as_a_table(tocsin: Program, cluster: MemoryCluster) -> None:
    cluster.brokers = {"north": "ws://north", "south": "ws://south"}
    shown = tocsin("show", "brokers")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["name", "url"],
        ["north", "ws://north"],
        ["south", "ws://south"],
    ]


def test_more_than_asked_for_is_counted(tocsin: Program, cluster: MemoryCluster) -> None:
    cluster.subscriptions = [("Of", {"event": str(number)}) for number in range(5)]
    shown = tocsin("show", "subscriptions", "--limit", "2")
    assert (len(shown.out.splitlines()), shown.err) == (3, "… and 3 more; --limit shows more of them\n")


def test_statements_can_be_printed_ready_to_be_applied(tocsin: Program, cluster: MemoryCluster) -> None:
    tocsin("apply", "-", stdin=b"CREATE DATASET A (id STRING); CREATE DATASET B (id STRING)")
    assert tocsin("show", "datasets", "--statements").out == (
        "CREATE DATASET A (id STRING);\n\nCREATE DATASET B (id STRING);\n"
    )


def test_nothing_is_said_to_be_nothing(tocsin: Program, cluster: MemoryCluster) -> None:
    assert (tocsin("show", "feeds").out, tocsin("show", "feeds").err) == ("", "there are no feeds\n")


def test_health_tells_problems_feeds_and_channels(tocsin: Program, cluster: MemoryCluster) -> None:
    cluster.status = Health(
        "degraded",
        ["channel Of fails: no such column"],
        uptime_seconds=12.4,
        feeds=[FeedHealth("reports", 100, 0.5)],
        channels=[ChannelHealth("Of", "failing", 3, "no such column")],
    )
    shown = tocsin("show", "health").out
    assert shown.startswith("status degraded, up 12 s\n• channel Of fails: no such column\n")
    assert ["reports", "100", "0.5"] in [line.split() for line in shown.splitlines()]


def test_a_server_that_is_starting_says_so(tocsin: Program, cluster: MemoryCluster) -> None:
    cluster.status = Health("starting")
    shown = tocsin("show", "health")
    assert (shown.status, shown.out) == (0, "status starting, up 0 s\n")


def test_health_without_a_token_is_the_status_alone(tocsin: Program, cluster: MemoryCluster) -> None:
    assert tocsin("show", "health", "--token", "").out == "status ok; with a token there is more to see\n"


def test_an_unknown_thing_is_a_usage_error(tocsin: Program) -> None:
    assert tocsin("show", "everything").status == 2


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8800"), ("0.0.0.0", "http://127.0.0.1:8800"), ("::1", "http://[::1]:8800")],
)
def test_without_an_option_the_server_is_that_of_the_settings(host: str, url: str) -> None:
    with connect(Settings(data=DataSettings(host=host)), None, None) as server:
        assert server.url == url


def test_a_server_on_any_free_port_is_found_by_the_address_it_wrote_down(tmp_path: Path) -> None:
    settings = Settings(data=DataSettings(directory=tmp_path, port=0))
    with pytest.raises(UnavailableError, match="no server has written its address"):
        connect(settings, None, None)
    (tmp_path / "address").write_text("http://127.0.0.1:4711\n", encoding="utf-8")
    with connect(settings, None, None) as server:
        assert server.url == "http://127.0.0.1:4711"


def test_channels_fit_into_eighty_columns() -> None:
    names = ("EmergenciesOfType", "EmergenciesOfTypeNearMe", "EmergencyShelters")
    figures = {"subscriptions": 1234, "state": "waiting", "execution": 4567, "seconds": 0.123, "dead_letters": 12}
    items = [{"name": name, "kind": "repetitive", "period": 15.0, **figures, "error": "x" * 200} for name in names]
    written = StringIO()
    Console(width=80, file=written, color_system=None).print(rows([brief(item) for item in items]))
    lines = [line.split() for line in written.getvalue().splitlines()]
    assert lines[0] == ["name", "kind", "subscriptions", "state", "execution", "seconds"]
    assert lines[1:] == [[name, "every", "15", "s", "1234", "waiting", "4567", "0.123"] for name in names]


def test_what_is_wrong_with_a_channel_is_told_below_the_table(
    tocsin: Program, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = {"name": "Of", "state": "failing", "error": "no such column", "set_aside": 1, "missed": 2}
    monkeypatch.setattr(cluster, "rows", lambda _: [failing])
    shown = tocsin("show", "channels").out.splitlines()
    assert [line.split() for line in shown[:2]] == [["name", "state"], ["Of", "failing"]]
    assert shown[2:] == ["• Of: no such column, 2 missed, as an execution took longer than the period, 1 set aside"]
