"""How much a publisher may say: it is slowed down, others are not, and nobody is cut off."""

from __future__ import annotations

import asyncio
import time
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.overlay.server.running import head, talk
from tests.overlay.server.test_access import KEYS, token
from tests.waiting import SECONDS
from tocsin.http.listening import config
from tocsin.overlay.client import connect
from tocsin.overlay.dialogue import Introduce, Known, Publish, Refused, Stored
from tocsin.overlay.server import rates, serve
from tocsin.overlay.server.rates import PublishingRate, PublishingRates, TokenBucket


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0.1, 20)), min_size=1, max_size=50), st.floats(0.5, 50))
def test_whoever_waits_as_long_as_it_is_told_takes_no_more_than_the_rate(
    steps: list[tuple[float, float]], per_second: float
) -> None:
    bucket, now, taken = TokenBucket(per_second, 10.0, 0.0), 0.0, 0.0
    for pause, tokens in steps:
        now += pause
        now += bucket.take(tokens, now)
        taken += tokens
        assert taken <= 10.0 + now * per_second + 1e-6


def test_an_overdrawn_bucket_has_everybody_wait_for_longer() -> None:
    bucket = TokenBucket(10.0, 5.0, 0.0)
    assert [bucket.take(5, 0.0), bucket.take(1, 0.0), bucket.take(1, 0.0)] == [0.0, 0.1, 0.2]
    assert bucket.take(1, 0.3) == 0.0


def test_publications_and_bytes_count_each_by_themselves() -> None:
    rate = PublishingRate(10.0, 1000.0, 0.0)
    assert [rate.take(1, 0.0) for _ in range(20)] == [0.0] * 20
    assert rate.take(1, 0.0) == 0.1
    assert PublishingRate(10.0, 1000.0, 0.0).take(2500, 0.0) == 0.5


def test_a_bearer_has_one_rate_however_often_it_comes_and_others_have_their_own() -> None:
    known = PublishingRates(10.0, 1000.0)
    assert known.of("ann", 0.0) is known.of("ann", 1.0) is not known.of("bob", 1.0)
    assert known.of("", 0.0) is not known.of("", 0.0)


def test_whoever_has_used_nothing_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MOST_IDLE", 2)
    known = PublishingRates(10.0, 1000.0)
    ann, bob = known.of("ann", 0.0), known.of("bob", 0.0)
    ann.take(1, 0.0)
    known.of("cleo", 0.01)
    assert known.of("ann", 0.01) is ann
    assert known.of("bob", 0.01) is not bob


async def test_whoever_publishes_too_much_is_slowed_down_and_nobody_else_is(tmp_path: Path) -> None:
    async with head(tmp_path, publish_rate=100, public_keys=KEYS) as root:
        greedy, honest = token("greedy"), token("honest")
        # On however many connections: two, each under a name of its own.
        async with (
            connect(root, name="greedy+1", client_token=greedy) as one,
            connect(root, name="greedy+2", client_token=greedy) as two,
            connect(root, name="honest", client_token=honest) as other,
        ):
            began = time.monotonic()
            flood = asyncio.gather(*(each.publish({"n": n}) for each in (one, two) for n in range(200)))
            async with asyncio.timeout(SECONDS):
                for n in range(20):
                    await other.publish({"n": n})
                assert not flood.done()
                await flood
            # A burst of two seconds' worth is free.
            assert time.monotonic() - began > 1.5


async def test_who_is_slowed_down_keeps_its_connection_though_its_answers_to_pings_are_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(*arguments: Any, **more: Any) -> Any:
        return config(*arguments, **more | {"ws_ping_interval": 0.05, "ws_ping_timeout": 0.05})

    monkeypatch.setattr(serve, "config", impatient)
    async with head(tmp_path, publish_rate=100) as root, talk(root) as publisher:
        await publisher.say(Introduce("p"))
        assert isinstance(await publisher.hear(), Known)
        await publisher.say(*(Publish(number, {"n": 1.0}) for number in range(1, 301)))
        stored = 0
        while stored < 300:
            message = await publisher.hear()
            assert isinstance(message, Stored)
            stored = message.sequence
        assert publisher.socket.close_code is None


async def test_with_a_signed_token_the_next_run_is_taken_once_the_first_ones_are_forgotten(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "publisher_seconds": 0.5,
        "replay_publications": 1,
        "public_keys": KEYS,
        "publishers": 4,
    }
    async with head(tmp_path, **settings) as root:

        async def run() -> Known | Refused:
            async with talk(root, token("ticker")) as publisher:
                await publisher.say(Introduce(f"ticker+{run_number()}"))
                heard = await publisher.hear()
                assert isinstance(heard, Known | Refused)
                if isinstance(heard, Known):
                    await publisher.say(Publish(heard.sequence + 1, {"n": 1.0}))
                    assert isinstance(await publisher.hear(), Stored)
                return heard

        async with asyncio.timeout(SECONDS):
            taken, refused = 0, 0
            while taken < 12:
                if isinstance(await run(), Known):
                    taken += 1
                else:
                    refused += 1
        assert refused


_runs = iter(range(10**9))


def run_number() -> int:
    return next(_runs)


def test_one_of_which_too_much_was_taken_gives_more_later_and_is_full_in_the_end() -> None:
    bucket = TokenBucket(2.0, 10.0, 0.0)
    assert [bucket.take(1, 0.0) for _ in range(12)] == [0.0] * 10 + [0.5, 1.0]
    assert not bucket.is_full(5.9)
    assert bucket.is_full(6.0)
    assert bucket.take(1, inf) == 0.0
