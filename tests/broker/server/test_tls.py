"""A broker with a certificate speaks TLS, to subscribers and to whoever calls."""

from __future__ import annotations

import ssl
from pathlib import Path

from tests.broker.server.world import World
from tests.certificate import certificate


async def test_subscribers_and_callers_are_served_by_tls(tmp_path: Path) -> None:
    files = certificate(tmp_path)
    context = ssl.create_default_context(cafile=files["tls_certificate"])
    async with World(tmp_path, files, verify=context) as world:
        assert world.url.startswith("wss://")
        assert (await world.status())["url"] == world.url
        async with world.member("ann", ssl=context) as ann:
            be = await world.subscription(ann, "flood")
            world.execute(1, be)
            assert (await ann.receive())["notes"][0]["e"] == 1
