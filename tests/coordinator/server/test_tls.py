"""A coordinator with a certificate speaks TLS, to whoever calls and to brokers."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.coordinator.server.live import wire
from tests.coordinator.server.running import running, settings
from tocsin.model.coordination import Accepted, Hello

OPENSSL = shutil.which("openssl")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A certificate for this machine and its key."""
    if OPENSSL is None:
        pytest.skip("needs openssl to make a certificate")
    files = {"tls_certificate": str(tmp_path / "certificate.pem"), "tls_key": str(tmp_path / "key.pem")}
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    where = ["-keyout", files["tls_key"], "-out", files["tls_certificate"]]
    subprocess.run([OPENSSL, "req", *kind, *subject, *where], check=True, capture_output=True)
    return files


async def test_callers_and_brokers_are_served_by_tls(tmp_path: Path, files: dict[str, str]) -> None:
    context = ssl.create_default_context(cafile=files["tls_certificate"])
    async with (
        running(settings(tmp_path / "coordinator", **files)) as coordinator,
        httpx.AsyncClient(verify=context, trust_env=False) as trusting,
    ):
        assert coordinator.url.startswith("https://")
        with pytest.raises(httpx.ConnectError):
            await coordinator.http.get(f"{coordinator.url}/health")
        assert (await trusting.get(f"{coordinator.url}/health")).json() == {"status": "ok"}
        async with wire(coordinator, coordinator.token("north", "broker"), ssl=context) as link:
            await link.say(Hello("north", "wss://north"))
            assert isinstance(await link.hear(), Accepted)
