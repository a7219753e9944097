"""A broker's token that is about to end is told of, in health and log, while there is time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.broker.server.world import World
from tests.waiting import until_async
from tocsin.broker.server.access import NOTICE, Expiry
from tocsin.coordinator.tokens import Claims, SigningKey

ENDS = 1_800_000_000.0


def expiry(now: float, token: str | None = None) -> Expiry:
    return Expiry("north", token or SigningKey.new().sign(Claims("north", "broker", ENDS)), lambda: now)


def test_nothing_is_said_while_there_is_time() -> None:
    assert expiry(ENDS - NOTICE - 1).warning() is None


def test_a_week_before_its_end_it_is_said_when_and_what_to_do() -> None:
    warning = expiry(ENDS - NOTICE).warning()
    assert warning
    assert "ends at 2027-01-15 08:00 UTC" in warning
    assert "tocsin token sign north --role broker" in warning


def test_after_its_end_it_is_said_that_it_has_ended() -> None:
    assert "has ended" in (expiry(ENDS).warning() or "")


@pytest.mark.parametrize("token", ["demo", "a.b", "bnVsbA.x", "é.x", "."])
def test_what_does_not_say_when_it_ends_never_does(token: str) -> None:
    assert expiry(ENDS, token).warning() is None


async def test_health_and_log_of_a_broker_warn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    world.settings = {"token": world.store.keyring().signing.sign(Claims("north", "broker", time.time() + 3600))}
    async with world:
        assert "broker.token ends at" in (await world.calls.get(f"{world.broker}/health")).json()["warning"]
        await until_async(lambda: "the broker's token ends soon" in caplog.messages, "warning")


async def test_a_broker_with_time_left_has_no_warning(world: World) -> None:
    assert (await world.calls.get(f"{world.broker}/health")).json() == {
        "status": "ok",
        "coordinator": True,
        "data": True,
    }
