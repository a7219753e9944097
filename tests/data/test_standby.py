"""Standing by: when it is time to take over, and what is said until then."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import until
from tocsin.data.fence import Fence, lock_directory, seen_term
from tocsin.data.server.serve import bind, run_standby
from tocsin.data.server.standby import create_standby_app
from tocsin.data.standby import Silence, Standby, _is_free
from tocsin.data.store import SeenHead, Store
from tocsin.data.tenure import Vigil
from tocsin.errors import ConflictError, StorageError, SupersededError, UnavailableError
from tocsin.http.listening import address
from tocsin.lock import take_lock
from tocsin.settings import LakeSettings, Settings, SparkSettings


def test_one_that_ended_in_order_is_followed_at_once() -> None:
    assert Silence(5).is_over(0, SeenHead(1, 7, True))


async def test_one_that_stands_by_can_read_the_lake_in_s3_when_its_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, str] = {}

    def start(_spark: SparkSettings, _scratch: Path, _kafka: bool, lake: Mapping[str, str]) -> None:
        told.update(lake)
        raise UnavailableError("no Spark in this test")

    monkeypatch.setattr("tocsin.data.session.start", start)
    lake = LakeSettings(location="s3://lake/tocsin", endpoint="http://127.0.0.1:9", region="eu-north-1")
    with Standby(Settings(lake=lake)) as standby, pytest.raises(UnavailableError):
        await standby.wait_for_turn()
    assert told["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert told["spark.hadoop.fs.s3a.endpoint.region"] == "eu-north-1"


def test_one_that_was_silent_for_too_long_is_followed() -> None:
    silence, seen = Silence(5), SeenHead(1, 7, False)
    assert [silence.is_over(now, seen) for now in (0, 4.9, 5)] == [False, False, True]


def test_time_in_which_nobody_could_give_a_sign_of_life_does_not_count() -> None:
    silence, seen = Silence(5), SeenHead(1, 7, False)
    assert not silence.is_over(0, seen)
    silence.forget()
    assert [silence.is_over(now, seen) for now in (100, 104.9, 105)] == [False, False, True]


@given(st.lists(st.tuples(st.floats(0, 4.9), st.booleans()), max_size=50))
def test_one_that_gives_signs_of_life_in_time_is_never_followed(looks: list[tuple[float, bool]]) -> None:
    silence, now, beats, since = Silence(5), 0.0, 0, 0.0
    for pause, beat in looks:
        now += pause
        if beat or now - since >= 5:
            beats, since = beats + 1, now
        assert not silence.is_over(now, SeenHead(1, beats, False))


def standing_by(directory: Path, host: str = "127.0.0.1") -> httpx.AsyncClient:
    """The server of a data cluster that stands by on a directory."""
    app = create_standby_app(msgspec.convert({"data": {"directory": directory, "host": host}}, Settings))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


@pytest.mark.parametrize("path", ["/feeds/reports", "/datasets", "/control", "/docs"])
async def test_whoever_calls_one_that_stands_by_is_told_where_the_active_one_is(tmp_path: Path, path: str) -> None:
    client = standing_by(tmp_path)
    answer = await client.post(path, content=b"{}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert "there is no active one at present" in answer.json()["error"]["message"]
    (tmp_path / "address").write_text("http://data-1:8800\n")
    assert "the active one listens on http://data-1:8800" in (await client.get(path)).json()["error"]["message"]


async def test_an_address_that_is_good_on_another_machine_only_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "address").write_text("http://127.0.0.1:8800\n")
    answer = await standing_by(tmp_path, host="0.0.0.0").get("/datasets")
    assert answer.json()["error"]["message"] == "this data cluster stands by; another one is active"


async def test_health_says_that_it_stands_by_with_a_status_for_load_balancers(tmp_path: Path) -> None:
    client = standing_by(tmp_path)
    answer = await client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "standby"})


def test_on_one_machine_the_lock_of_the_directory_is_waited_for(tmp_path: Path) -> None:
    assert _is_free(tmp_path / "none")
    lock = take_lock(tmp_path / "lock", "the data directory")
    assert not _is_free(tmp_path)
    os.close(lock)
    assert _is_free(tmp_path)
    assert _is_free(tmp_path)


def test_a_directory_whose_lock_another_has_is_had_by_who_has_claimed_the_store_from_it(tmp_path: Path) -> None:
    held = lock_directory(tmp_path)
    assert held is not None
    Fence(tmp_path, 1, "a store").put_up()
    with pytest.raises(ConflictError, match="is being written by process"):
        lock_directory(tmp_path)
    with pytest.raises(ConflictError):
        lock_directory(tmp_path, "another store")
    assert lock_directory(tmp_path, "a store") is None
    os.close(held)


def test_a_fence_is_put_up_by_later_ones_only_and_seen_by_all(tmp_path: Path) -> None:
    first, second = Fence(tmp_path, 1, "s"), Fence(tmp_path, 2, "s")
    first.put_up()
    first.check()
    second.put_up()
    second.check()
    with pytest.raises(SupersededError, match=r"its term is 2, that of this one 1"):
        first.check()
    with pytest.raises(SupersededError):
        first.put_up()
    assert seen_term(tmp_path) == 2


def test_nobody_gets_past_a_fence_that_cannot_be_read(tmp_path: Path) -> None:
    fence = Fence(tmp_path, 1)
    fence.put_up()
    (tmp_path / "term").write_bytes(b"\xff\xff")
    with pytest.raises(SupersededError):
        fence.check()


class Noticing:
    """A data cluster's vigil, and what it has noticed."""

    def __init__(self, store: Store) -> None:
        self.noticed: list[SupersededError] = []
        self.vigil = Vigil(store, self.noticed.append)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.data.tenure.BEAT_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
def test_signs_of_life_are_given_until_another_has_taken_over(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.claim()
        fence = Fence(tmp_path, store.term)
        fence.put_up()
        noticing = Noticing(store)
        noticing.vigil.start(fence, beats=True)
        until(lambda: store.head.last_seen().beats >= 3)
        store.head.begin()
        until(lambda: noticing.noticed)
        assert "another data cluster has taken over since term 1" in str(noticing.noticed[0])
        noticing.vigil.stop()


@pytest.mark.usefixtures("quick")
def test_while_the_state_is_away_signs_of_life_are_tried_and_the_fence_is_seen_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        store.claim()
        tried = threading.Event()

        def away(_: int) -> None:
            tried.set()
            raise StorageError("the database is away")

        monkeypatch.setattr(store.head, "beat", away)
        fence = Fence(tmp_path, store.term)
        fence.put_up()
        noticing = Noticing(store)
        noticing.vigil.start(fence, beats=True)
        assert tried.wait(60)
        assert not noticing.noticed
        Fence(tmp_path, store.term + 1).put_up()
        until(lambda: noticing.noticed)
        noticing.vigil.stop()


def _hear(listening: asyncio.Event, _url: str) -> None:
    listening.set()


async def test_whoever_comes_while_it_takes_over_is_answered_by_the_next_server(tmp_path: Path) -> None:
    settings = msgspec.convert({"data": {"directory": tmp_path, "port": 0}}, Settings)
    with bind(settings) as listener:
        async with httpx.AsyncClient(base_url=address(listener), trust_env=False, timeout=60) as client:
            for word in ("first", "second"):
                turn: asyncio.Future[str] = asyncio.get_running_loop().create_future()
                listening = asyncio.Event()
                calling = asyncio.create_task(client.get("/health"))
                serving = asyncio.create_task(run_standby(settings, listener, turn, partial(_hear, listening)))
                await listening.wait()
                assert (await calling).json() == {"status": "standby"}
                turn.set_result(word)
                assert await serving == word
