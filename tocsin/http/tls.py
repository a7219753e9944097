"""TLS: a server's certificate and key, tried out before anybody connects."""

from __future__ import annotations

import ssl
from typing import Any

from tocsin.errors import SettingsError


def tls(section: str, certificate: str, key: str) -> dict[str, Any]:
    """Uvicorn's settings for TLS; none without a certificate.

    ``section`` is that of the settings ``tls_certificate`` and ``tls_key`` come from. Files that are missing or make no
    sense are a SettingsError.
    """
    if not certificate:
        if key:
            raise SettingsError(f"{section}.tls_key is set, but not {section}.tls_certificate: it needs both")
        return {}
    for name, file in (("tls_certificate", certificate), ("tls_key", key or certificate)):
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            raise SettingsError(f"{section}.{name} = {file} cannot be read: {error.strerror}") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key or None)
    except ssl.SSLError as error:
        raise SettingsError(
            f"{section}.tls_certificate = {certificate} cannot be used: {error.reason or error}; "
            f"it and {section}.tls_key must be PEM files of a certificate and its key"
        ) from None
    return {"ssl_certfile": certificate, "ssl_keyfile": key or None}
