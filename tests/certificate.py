"""Certificates for this machine, made with openssl: signed by themselves, or by an authority that nobody knows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def certificate(directory: Path) -> dict[str, str]:
    """The settings of a server that has a new certificate for 127.0.0.1; its files are in the directory."""
    files = {"tls_certificate": str(directory / "certificate.pem"), "tls_key": str(directory / "key.pem")}
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    where = ["-keyout", files["tls_key"], "-out", files["tls_certificate"]]
    _openssl("req", *kind, *subject, *where)
    return files


def authority(directory: Path) -> tuple[str, dict[str, str]]:
    """The certificate of a new private authority, and the settings of a server that has one of it for 127.0.0.1."""
    ca, ca_key = directory / "ca.pem", directory / "ca-key.pem"
    request, names = directory / "request.pem", directory / "names"
    files = {"tls_certificate": str(directory / "of-ca.pem"), "tls_key": str(directory / "of-ca-key.pem")}
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    # Python 3.13 asks of an authority that it says what its key is for.
    subject = ["-subj", "/CN=Authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    _openssl("req", "-x509", *key, "-days", "1", *subject, "-keyout", str(ca_key), "-out", str(ca))
    _openssl("req", *key, "-subj", "/CN=127.0.0.1", "-keyout", files["tls_key"], "-out", str(request))
    identified = "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    names.write_text(f"subjectAltName=IP:127.0.0.1\n{identified}", encoding="utf-8")
    signed = ["-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key), "-CAcreateserial", "-days", "1"]
    _openssl("x509", *signed, "-extfile", str(names), "-out", files["tls_certificate"])
    return str(ca), files


def _openssl(*arguments: str) -> None:
    openssl = shutil.which("openssl")
    assert openssl, "openssl is not installed; scripts/ensure-openssl installs it"
    subprocess.run([openssl, *arguments], check=True, capture_output=True)
