"""Secrets taken out of texts that people read, keep and pass on: logs, messages, the list of settings.

Two ways, each for where the other does not reach: by what a secret looks like or is called, and by the secrets that a
process was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "(secret)"
# A shorter secret is a word, like that of the demo, and would be taken out of texts that have nothing to do with it.
SHORTEST: Final = 8
# As Spark's own redaction, and what clouds call theirs.
_NAMES: Final = r"secret|passw|passphrase|token|credential|(access|account|api|private|signing|shared)[._-]?key|\bsas\b"
_SECRET: Final = re.compile(_NAMES, re.IGNORECASE)
_URL: Final = re.compile(r"[a-zA-Z][\w+.-]*://[^\s\"'<>\\]+")
# Up to the last @, for passwords may have one that should have been escaped; what looks like a port is one.
_USER: Final = re.compile(r"(://[^:/@\s]*):(?!\d+(?:[/?#]|$))(.*)@")
_QUERY: Final = re.compile(r"([?&;])([^=&;]+)=([^&;#]*)")
# What is shown of a query; of any other parameter nobody knows whether it is a password.
_HARMLESS: Final = {"broker", "sslmode", "sslrootcert", "connect_timeout", "application_name", "limit", "x", "y"}
_BEARER: Final = re.compile(r"(Bearer)[ +]+[^\s\"'\\,;>)]+", re.IGNORECASE)
# The claims of a signed token are an object of JSON, whose first characters are always these in base64.
_SIGNED: Final = re.compile(r"eyJ[\w-]{10,}(\.[\w-]+)+")
_FIELD: Final = re.compile(rf"""(\\*["'][\w.-]*({_NAMES}|\bkeys?)\\*["']\s*:\s*\\*["'])[^"'\\]+""", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether what is called so is a secret by its name."""
    return _SECRET.search(name) is not None


def redact(text: str) -> str:
    """The text without what looks like a secret: tokens, passwords in URLs, values of their queries."""
    text = _URL.sub(_without_secrets, text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _SIGNED.sub(HIDDEN, text)
    return _FIELD.sub(rf"\1{HIDDEN}", text)


class Redactor:
    """:func:`redact`, which also knows some secrets by heart."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {one for secret in secrets if len(secret) >= SHORTEST for one in (secret, json.dumps(secret)[1:-1])}
        self._known = re.compile(
            "|".join(re.escape(one) for one in sorted(spellings, key=len, reverse=True)) or r"(?!)"
        )

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        return redact(self._known.sub(HIDDEN, text))


def password(url: str) -> str:
    """The password in a URL; nothing where there is none."""
    found = _USER.search(url)
    return found[2] if found else ""


def _without_secrets(found: re.Match[str]) -> str:
    url = _USER.sub(rf"\1:{HIDDEN}@", found[0])
    return _QUERY.sub(lambda one: one[0] if one[2].lower() in _HARMLESS else f"{one[1]}{one[2]}={HIDDEN}", url)
