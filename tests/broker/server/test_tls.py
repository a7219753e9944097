"""A broker with a certificate speaks TLS, to subscribers and to whoever calls."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest

import tocsin
import tocsin.client
from tests.broker.server.world import World
from tests.certificate import authority, certificate
from tocsin.errors import SettingsError, UnavailableError
from tocsin.trust import trust


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


async def test_a_whole_network_speaks_tls_with_certificates_of_a_private_authority(tmp_path: Path) -> None:
    ca, files = authority(tmp_path)
    async with World(tmp_path, verify=trust(ca), files=files, ca=ca) as world:
        assert (world.data[:6], world.coordinator[:6], world.broker[:6]) == ("https:", "https:", "https:")
        token = await tocsin.client.register(world.coordinator, "ann", "demo", ca=ca)
        async with tocsin.connect(world.coordinator, token, ca=ca) as ann:
            floods = await ann.subscribe("Of", event="flood")
            world.execute(1, floods.number)
            assert (await anext(aiter(floods))).execution == 1


async def test_who_was_not_told_of_a_private_authority_does_not_trust_it(tmp_path: Path) -> None:
    ca, files = authority(tmp_path)
    async with World(tmp_path, verify=trust(ca), files=files, ca=ca) as world:
        with pytest.raises(UnavailableError, match="certificate"):
            await tocsin.client.register(world.coordinator, "ann", "demo")
        other = World(tmp_path / "other", cluster=world.cluster, store=world.store, files=files)
        other.coordinator, other.data = world.coordinator, world.data
        async with other.running_broker() as url, httpx.AsyncClient(verify=trust(ca), trust_env=False) as client:
            assert (await client.get(f"{url}/health")).json()["status"] == "starting"


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_an_authority_that_cannot_be_read_is_refused_in_words(tmp_path: Path, content: str | None) -> None:
    ca = tmp_path / "ca.pem"
    if content is not None:
        ca.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"ca\.pem \(tls\.ca\) cannot be used: "):
        trust(str(ca))
