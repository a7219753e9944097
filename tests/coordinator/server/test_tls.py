"""A coordinator with a certificate speaks TLS, to whoever calls and to brokers."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest

from tests.certificate import certificate
from tests.coordinator.server.live import wire
from tests.coordinator.server.running import running, settings
from tocsin.model.coordination import Accepted, Hello
from tocsin.trust import trust


async def test_callers_and_brokers_are_served_by_tls(tmp_path: Path) -> None:
    files = certificate(tmp_path)
    context = ssl.create_default_context(cafile=files["tls_certificate"])
    async with (
        running(settings(tmp_path / "coordinator", **files)) as coordinator,
        httpx.AsyncClient(verify=context, trust_env=False) as trusting,
        httpx.AsyncClient(verify=trust(), trust_env=False) as distrusting,
    ):
        assert coordinator.url.startswith("https://")
        with pytest.raises(httpx.ConnectError):
            await distrusting.get(f"{coordinator.url}/health")
        assert (await trusting.get(f"{coordinator.url}/health")).json() == {"status": "ok"}
        async with wire(coordinator, coordinator.token("north", "broker"), ssl=context) as link:
            await link.say(Hello("north", "wss://north"))
            assert isinstance(await link.hear(), Accepted)
