"""What a broker, its coordinator and the data server log, at the level that tells most, has no tokens in it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import tocsin
from tests.broker.server.world import World
from tocsin.coordinator.tokens import Claims
from tocsin.log import TALKATIVE, configure


@pytest.fixture(params=["json", "text"])
def logged(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """All that is logged."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # pytest's own handlers are kept away: configure closes what it replaces.
    root.handlers[:] = []
    stream = io.StringIO()
    configure("debug", request.param, stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET)


async def test_no_token_is_logged_at_any_level(tmp_path: Path, logged: io.StringIO) -> None:
    world = World(tmp_path)
    own = world.store.keyring().signing.sign(Claims("north", "broker", 1e12))
    world.settings = {"token": own, "data_token": "broker"}
    async with world:
        token = await world.token("ann")
        async with tocsin.connect(world.coordinator, token) as ann:
            floods = await ann.subscribe("Of", event="flood")
            world.execute(1, floods.number)
            assert (await anext(aiter(floods))).execution == 1
        strange = {"Authorization": "Bearer strange-token-of-somebody"}
        for server in (world.data + "/datasets", world.coordinator + "/status", world.broker + "/status"):
            answer = await world.calls.get(server, headers=strange, params={"token": "in-the-query-1234"})
            assert answer.status_code == 401
        await world.status()
    text = logged.getvalue()
    assert "call answered" in text
    secrets = [own, token, world.operator()["Authorization"].removeprefix("Bearer ")]
    parts = [part for secret in secrets for part in secret.split(".")]
    assert [part for part in (*parts, "strange-token-of-somebody", "in-the-query-1234") if part in text] == []
