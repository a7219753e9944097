"""One front door: what a program connects to is told by the URL's scheme."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tocsin
from tests.client.lively import Lively
from tests.overlay.server.running import edge, head
from tocsin.client.subscriber import Subscriber
from tocsin.errors import FilterError, InvalidError, NotFoundError, UnavailableError
from tocsin.overlay.client import OverlayConnection


def test_a_coordinator_has_an_http_url_and_an_overlays_broker_a_ws_one() -> None:
    assert isinstance(tocsin.connect("https://example.org", "token"), Subscriber)
    assert isinstance(tocsin.connect("wss://example.org"), OverlayConnection)
    assert isinstance(tocsin.connect(["ws://a.example.org", "ws://b.example.org"], name="ann"), OverlayConnection)


async def test_the_same_library_subscribes_and_publishes_by_content(tmp_path: Path) -> None:
    async with (
        head(tmp_path) as root,
        edge(root) as url,
        tocsin.connect(url) as me,
        tocsin.connect(root, name="ticker") as ticker,
    ):
        quotes = await me.subscribe(where="symbol = 'YHOO' and high > 40")
        await ticker.publish({"symbol": "YHOO", "high": 39.0})
        await ticker.publish({"symbol": "YHOO", "high": 41.5})
        note = await anext(quotes)
    assert (note.publisher, note.sequence, note.content) == ("ticker", 2, {"symbol": "YHOO", "high": 41.5})


async def test_a_filter_that_cannot_be_read_is_refused_with_its_place_before_anybody_is_asked() -> None:
    async with tocsin.connect("ws://127.0.0.1:1") as me:
        with pytest.raises(FilterError, match="a value is expected") as refused:
            await me.subscribe(where="symbol = 'YHOO' and\nhigh > low")
    assert (refused.value.line, refused.value.column) == (2, 8)


@pytest.mark.parametrize(
    ("url", "more", "reason"),
    [
        ("http://localhost:8700", {}, "needs a token"),
        ("http://localhost:8700", {"client_token": "t"}, "no edge or head of an overlay"),
        (["ws://a", "http://b"], {}, "ws://a, http://b is no edge or head of an overlay"),
        ([], {}, "nothing is no edge or head"),
        ("ws://a", {"token": "t"}, "client_token="),
        ("localhost:8711", {"token": "t"}, "'localhost:8711' is no coordinator's URL"),
    ],
)
def test_what_does_not_go_together_is_told(url: str | list[str], more: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        tocsin.connect(url, **more)


async def test_who_takes_one_for_the_other_is_told(tmp_path: Path) -> None:
    async with head(tmp_path) as root:
        me = tocsin.connect(root.replace("ws", "http"), "token")
        with pytest.raises(NotFoundError, match="an overlay's broker; programs name it by its ws:// URL"):
            await me.__aenter__()
    async with Lively("a") as town, tocsin.connect(town.url.replace("http", "ws")) as other:
        with pytest.raises(UnavailableError, match="is an edge or a head of an overlay there"):
            await other.subscribe(where="high > 1")


def test_who_subscribes_by_content_loads_neither_numpy_nor_a_server() -> None:
    script = "import sys, tocsin; tocsin.connect('ws://a'); print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "starlette", "uvicorn"} & set(loaded)
