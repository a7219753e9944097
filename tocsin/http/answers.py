"""Responses of JSON text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``value`` as JSON. A payload in it is copied as it stands, not parsed."""
    return Response(msgspec.json.encode(value, enc_hook=str), status, headers, "application/json")
