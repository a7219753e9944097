"""A broker with a certificate speaks TLS, to subscribers and to whoever calls."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.broker.server.world import World

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


async def test_subscribers_and_callers_are_served_by_tls(tmp_path: Path, files: dict[str, str]) -> None:
    context = ssl.create_default_context(cafile=files["tls_certificate"])
    async with World(tmp_path, files, verify=context) as world:
        assert world.url.startswith("wss://")
        assert (await world.status())["url"] == world.url
        async with world.member("ann", ssl=context) as ann:
            be = await world.subscription(ann, "flood")
            world.execute(1, be)
            assert (await ann.receive())["notes"][0]["e"] == 1
