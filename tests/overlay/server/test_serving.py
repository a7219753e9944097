from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.overlay.server.running import Talk, edge, head, talk
from tests.ports import free_port
from tests.waiting import SECONDS, until_async
from tocsin.errors import SettingsError
from tocsin.overlay.dialogue import (
    Began,
    Gap,
    HeadCursor,
    Introduce,
    Known,
    Note,
    Passed,
    Publish,
    Refused,
    Stored,
    Subscribe,
)
from tocsin.overlay.load import Metrics
from tocsin.overlay.messages import Change, Control, Fetch, FromLink, LocalLoad, Mark, Routed, Sync
from tocsin.overlay.server.serve import run_edge, run_head
from tocsin.overlay.server.status import OverlayFigures, OverlayHealth
from tocsin.settings.overlay import OverlaySettings


async def publish(url: str, *highs: float, known: int = 0) -> None:
    """One after the other, each stored before the next is sent."""
    async with talk(url) as publisher:
        await publisher.say(Introduce("p"))
        told = await publisher.hear()
        assert isinstance(told, Known)
        assert told.sequence == known
        for number, high in enumerate(highs, known + 1):
            await publisher.say(Publish(number, {"symbol": "YHOO", "high": high}))
            assert await publisher.hear() == Stored(number)


async def begun(subscriber: Talk) -> Began:
    """Where the next head begins."""
    message = await subscriber.hear()
    assert isinstance(message, Began)
    return message


async def known_history(root: str) -> str:
    """The incarnation of a head's log."""
    async with talk(root) as publisher:
        await publisher.say(Introduce("looks"))
        told = await publisher.hear()
    assert isinstance(told, Known)
    return told.incarnation


async def heard(subscriber: Talk, count: int) -> list[float]:
    """What the next publications say; how far others went is left out."""
    found: list[float] = []
    while len(found) < count:
        message = await subscriber.hear()
        if isinstance(message, Note):
            found.append(float(message.content["high"]))
        else:
            assert isinstance(message, Passed)
    return found


async def test_what_is_published_to_a_head_comes_to_who_wants_it_at_an_edge(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root) as url, talk(url) as me:
        await me.say(Subscribe("me", "symbol = 'YHOO' and high > 40"))
        assert (await begun(me)).offset == 0
        await publish(root, 39, 41, 12, 50)
        assert await heard(me, 2) == [41, 50]


async def test_a_head_that_starts_again_goes_on_from_its_log(tmp_path: Path) -> None:
    async with head(tmp_path) as root:
        await publish(root, 39, 41, 50)
        before = await known_history(root)
    async with head(tmp_path) as root, edge(root) as url, talk(url) as me:
        await me.say(Subscribe("me", "high > 40", {"h": HeadCursor(1, before)}))
        assert await me.hear() == Began("h", 1, await known_history(root), before, 3)
        assert await heard(me, 2) == [41, 50]
        await publish(root, 60, known=3)
        assert await heard(me, 1) == [60]


async def test_what_the_log_does_not_have_any_more_is_told_as_a_gap(tmp_path: Path) -> None:
    async with head(tmp_path, replay_publications=2) as root:
        await publish(root, 1, 2, 3, 4, 5)
        before = await known_history(root)
    async with head(tmp_path, replay_publications=2) as root, edge(root) as url, talk(url) as me:
        await me.say(Subscribe("me", "high > 0", {"h": HeadCursor(1, before)}))
        assert (await begun(me)).offset == 1
        assert await me.hear() == Gap("h", 2, 3)
        assert await heard(me, 2) == [4, 5]


async def test_a_head_that_lost_its_disk_says_that_it_is_another_log(tmp_path: Path) -> None:
    async with head(tmp_path) as root:
        await publish(root, 39, 41, 50)
        before = await known_history(root)
    shutil.rmtree(tmp_path / "h")
    async with head(tmp_path) as root, edge(root) as url, talk(url) as me:
        await publish(root, 51)
        await me.say(Subscribe("me", "high > 40", {"h": HeadCursor(3, before)}))
        assert await me.hear() == Began("h", 0, await known_history(root), before, -1)
        assert await heard(me, 1) == [51]


async def test_publications_find_their_way_over_other_heads(tmp_path: Path) -> None:
    async with head(tmp_path) as root, head(tmp_path, "h2", head=root) as second, edge(second) as url, talk(url) as me:
        await me.say(Subscribe("me", "high > 40"))
        assert {(await begun(me)).head, (await begun(me)).head} == {"h", "h2"}
        await publish(root, 41)
        assert await heard(me, 1) == [41]
        await publish(second, 42)
        assert await heard(me, 1) == [42]


async def test_heads_in_a_circle_say_so_and_go_on_without_it(tmp_path: Path) -> None:
    last = f"ws://127.0.0.1:{free_port()}"
    async with (
        head(tmp_path, "h1", head=last) as first,
        head(tmp_path, "h2", head=first) as second,
        edge(second) as url,
        head(tmp_path, "h3", port=urlsplit(last).port, head=second),
        httpx.AsyncClient(trust_env=False) as http,
        talk(url) as me,
    ):

        async def problems() -> list[str]:
            urls = [f"{each.replace('ws', 'http', 1)}/health" for each in (first, second, last)]
            answers = [msgspec.json.decode((await http.get(each)).content, type=OverlayHealth) for each in urls]
            return [problem for answer in answers for problem in answer.problems if "in a circle, h" in problem]

        await until_async(problems)
        await me.say(Subscribe("me", "high > 40", {"h1": HeadCursor(0)}))
        await publish(first, 41)
        while not isinstance(message := await me.hear(), Note):
            assert isinstance(message, Began | Passed)
        assert message.content["high"] == 41


async def test_brokers_say_how_they_are(tmp_path: Path) -> None:
    async with (
        head(tmp_path) as root,
        edge(root) as url,
        talk(url) as me,
        httpx.AsyncClient(trust_env=False, verify=False) as http,
    ):
        await me.say(Subscribe("me", "high > 40"))
        await me.hear()
        health = msgspec.json.decode((await http.get(f"{url.replace('ws', 'http')}/health")).content)
        assert msgspec.convert(health, OverlayHealth) == OverlayHealth("ok", "e", "edge")
        its = (await http.get(f"{url.replace('ws', 'http')}/status")).content
        status = msgspec.json.decode(its, type=OverlayFigures)
        assert (status.role, status.cluster, status.clients, [link.name for link in status.links]) == (
            "edge",
            "h",
            1,
            ["h"],
        )
        assert status.metrics is not None
        of_head = (await http.get(f"{root.replace('ws', 'http')}/status")).content
        assert [link.url for link in msgspec.json.decode(of_head, type=OverlayFigures).links] == [url]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("{", "the message is not JSON: "),
        ('{"type": "Sing"}', "the message does not fit: Invalid value 'Sing'"),
        ('{"type": "Subscribe", "subscriber": "me"}', "missing required field `where`"),
        ('{"type": "Subscribe", "subscriber": "", "where": "a = 1"}', "'' is no name"),
        ('{"type": "Subscribe", "subscriber": "me", "where": "a = 1", "cursors": {"h": [-1]}}', "cursors are offsets"),
        (
            '{"type": "Subscribe", "subscriber": "me", "where": "a = 1", "cursors": {"h": [1, "%s"]}}' % ("x" * 65),
            "no incarnation of a log has more than 64 letters",
        ),
        (
            '{"type": "Subscribe", "subscriber": "me", "where": "a = 1", "cursors": {"%s": [1]}}' % ("x" * 129),
            "cursors are by the names of heads",
        ),
        ('{"type": "Subscribe", "subscriber": "me", "where": "a ="}', "a value is expected"),
        ('{"type": "Introduce", "publisher": "p"}', "e is an edge, which serves subscribers: publish to a head"),
        (b"\x00", "messages are JSON text"),
    ],
)
async def test_an_edge_refuses_what_makes_no_sense_and_says_why(
    tmp_path: Path, message: str | bytes, reason: str
) -> None:
    async with head(tmp_path) as root, edge(root) as url, talk(url) as me:
        await me.socket.send(message)
        refused = await me.hear()
        assert isinstance(refused, Refused)
        assert reason in refused.message
        assert (await me.closed())[0] == 4400


async def test_a_head_refuses_what_makes_no_sense_and_says_why(tmp_path: Path) -> None:
    async with head(tmp_path, publishers=1) as root:
        await publish(root, 1)
        for message, reason in (
            (Subscribe("me", "a = 1"), "h is a head, which takes publications: subscribe at one of its edges"),
            (
                Introduce("second"),
                "h knows overlay.publishers = 1 publishers, and takes no more: "
                "after overlay.publisher_seconds = 3600 without one it is forgotten",
            ),
            (Publish(0, {}), "0 is no number of a publication: they begin with 1"),
        ):
            async with talk(root) as client:
                await client.say(message)
                assert await client.hear() == Refused(reason)
                assert (await client.closed())[0] == 4400


async def test_a_message_that_is_too_large_ends_its_connection(tmp_path: Path) -> None:
    async with head(tmp_path, message_bytes=1024) as root, talk(root) as client:
        await client.say(Introduce("p" * 2000))
        assert (await client.closed())[0] == 1009


async def test_a_link_that_says_what_cannot_be_read_is_closed(tmp_path: Path) -> None:
    async with head(tmp_path) as root, connect(f"{root}/link?broker=x&role=edge", proxy=None) as socket:
        await socket.send("[]")
        await socket.wait_closed()
        assert socket.close_code == 4400
        assert "the message does not fit" in (socket.close_reason or "")


@pytest.mark.parametrize("asking", [Sync(["size ~ 1"], []), Change(False, [f"size = {'9' * 5000}"], [])])
async def test_a_broker_of_another_version_whose_filters_cannot_be_read_is_sent_everything(
    tmp_path: Path, asking: FromLink
) -> None:
    async with (
        head(tmp_path) as root,
        httpx.AsyncClient(trust_env=False, base_url=f"http{root[2:]}") as http,
        connect(f"{root}/link?broker=x&role=edge", proxy=None) as link,
    ):
        await link.send(msgspec.json.encode(asking).decode())

        async def problems() -> list[str]:
            return list((await http.get("/health")).json()["problems"])

        await until_async(problems)
        told = "x asks for 1 filters that h cannot read, so that everything is sent to it: are both of the same version"
        assert await problems() == [f"{told}?"]
        await publish(root, 7)
        async with asyncio.timeout(SECONDS):
            while not isinstance(found := msgspec.json.decode(await link.recv(), type=FromLink), Routed):
                pass
        assert found.content == {"symbol": "YHOO", "high": 7}


async def test_nonsense_is_left_out_if_another_has_only_passed_it_on(tmp_path: Path) -> None:
    load = LocalLoad("far", "other", Metrics(0.1, 0.1, 0.0), "OK", [])
    async with head(tmp_path) as root:
        async with connect(f"{root}/link?broker=h2&role=head", proxy=None) as link:
            fetch = Fetch("1", ["a = 1"], {}, [])
            for message in (
                Sync(["a = 1"], ["to = 'far'"]),
                Control({"load": "other"}, "far", load),
                Control({"to": "h"}, "far", fetch),
            ):
                await link.send(msgspec.json.encode(message).decode())
            async with asyncio.timeout(SECONDS):
                while not isinstance(msgspec.json.decode(await link.recv(), type=FromLink), Control):
                    pass
            await link.send(msgspec.json.encode(Control({"load": "h2"}, "h2", load)).decode())
            await link.wait_closed()
            assert link.close_code == 4400
        async with connect(f"{root}/link?broker=e&role=edge", proxy=None) as link:
            await link.send(msgspec.json.encode(Mark("h", 2**40)).decode())
            await link.wait_closed()
            said = "e is an edge, and has said Mark, which is not for it to say"
            assert (link.close_code, link.close_reason) == (4400, said)


async def test_tokens_are_asked_for_where_they_are_set(tmp_path: Path) -> None:
    secret = {"token": "of-brokers", "client_token": "of-clients"}
    async with head(tmp_path, **secret) as root, edge(root, **secret) as url:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{root}/link?broker=x&role=edge", proxy=None)
        assert refused.value.response.status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{url}/client", proxy=None)
        assert refused.value.response.status_code == 401
        async with talk(url, "of-clients") as me:
            await me.say(Subscribe("me", "a = 1"))
            assert (await begun(me)).head == "h"


@pytest.mark.parametrize("query", ["broker=h&role=edge", "broker=x", "role=edge", "broker=`&role=edge"])
async def test_who_links_without_sense_is_refused(tmp_path: Path, query: str) -> None:
    async with head(tmp_path) as root:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{root}/link?{query}", proxy=None)
        assert refused.value.response.status_code == 400


async def test_an_edge_must_name_a_head(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"overlay\.head is empty, and an edge has a head"):
        await run_edge(OverlaySettings(port=0))
    async with head(tmp_path) as root, edge(root) as url:
        with pytest.raises(SettingsError, match="is the edge e: name its head instead"):
            await run_edge(OverlaySettings(name="f", port=0, head=url))
        with pytest.raises(SettingsError, match=r"overlay\.name = h is the name of its head"):
            await run_edge(OverlaySettings(name="h", port=0, head=root))


async def test_without_a_token_only_this_machine_is_listened_to(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="can be reached from other machines"):
        await run_head(OverlaySettings(host="0.0.0.0", port=0, directory=tmp_path))


@pytest.mark.parametrize("host", ["head.example.org:8710", "10.0.0.5"])
async def test_without_a_clients_token_other_machines_may_come_by_whatever_name_it_has_there(
    tmp_path: Path, host: str
) -> None:
    async with head(tmp_path, token="of-brokers") as root, edge(root, token="of-brokers") as url:
        async with httpx.AsyncClient(trust_env=False, headers={"Host": host}) as client:
            for broker in (root, url):
                assert (await client.get(f"{broker.replace('ws', 'http', 1)}/health")).status_code == 200
        there: dict[str, Any] = {"host": "127.0.0.1", "proxy": None}
        its = {"Authorization": "Bearer of-brokers"}
        at_head, at_edge = ({"port": urlsplit(each).port, **there} for each in (root, url))
        async with connect(f"ws://{host}/link?broker=x&role=edge", additional_headers=its, **at_head) as link:
            assert isinstance(msgspec.json.decode(await link.recv(), type=FromLink), Sync)
        async with connect(f"ws://{host}/client", **at_edge) as socket:
            me = Talk(socket)
            await me.say(Subscribe("me", "a = 1"))
            assert (await begun(me)).head == "h"
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{host}/client", origin=Origin(f"http://{host}"), **at_edge)
        assert refused.value.response.status_code == 403
        assert b"where no token is asked for" in (refused.value.response.body or b"")


async def test_an_edge_says_why_what_it_names_does_not_answer_as_a_head(tmp_path: Path) -> None:
    async with head(tmp_path) as root:
        with pytest.raises(SettingsError, match="not as a head does: there is no call GET /elsewhere/health"):
            await run_edge(OverlaySettings(name="f", port=0, head=f"{root}/elsewhere"))


@pytest.mark.parametrize("head", ["ws://127.0.0.1:high", "http://1.2.3.400:8710", "127.0.0.1:8710"])
async def test_a_head_whose_url_is_none_is_told_and_not_waited_for(head: str) -> None:
    with pytest.raises(SettingsError, match=r"overlay\.head = .*(is not a URL|is not allowed)"):
        await run_edge(OverlaySettings(name="f", port=0, head=head))
