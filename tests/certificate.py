"""A self-signed certificate for this machine, made with openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def certificate(directory: Path) -> dict[str, str]:
    """The settings of a server that has a new certificate for 127.0.0.1; its files are in the directory."""
    openssl = shutil.which("openssl")
    assert openssl, "openssl is not installed; scripts/ensure-openssl installs it"
    files = {"tls_certificate": str(directory / "certificate.pem"), "tls_key": str(directory / "key.pem")}
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    where = ["-keyout", files["tls_key"], "-out", files["tls_certificate"]]
    subprocess.run([openssl, "req", *kind, *subject, *where], check=True, capture_output=True)
    return files
