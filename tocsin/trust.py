"""Whom connections with TLS trust: the system's authorities, and a private one where there is one."""

from __future__ import annotations

import ssl
from functools import cache

from tocsin.errors import SettingsError


@cache
def trust(ca: str = "") -> ssl.SSLContext:
    """A context that trusts the system's authorities, and those in the file ``ca``. It takes long to make, so that all
    connections share it. A file that cannot be used is a SettingsError."""
    context = ssl.create_default_context()
    if not ca:
        return context
    try:
        context.load_verify_locations(cafile=ca)
    except ssl.SSLError as error:
        reason = f"{error.reason or error}; it must be a PEM file of certificates"
    except OSError as error:
        reason = str(error.strerror)
    else:
        return context
    raise SettingsError(f"the authorities' certificates {ca} (tls.ca) cannot be used: {reason}")
