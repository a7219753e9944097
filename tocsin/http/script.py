"""The JavaScript client, which every server that a page may reach hands out."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.errors import NotFoundError

PATHS: Final = ("/tocsin.js", "/tocsin-content.js")
"""The client, and its module for content-based subscriptions, which it loads when they are asked for."""


def script(request: Request) -> Response:
    """A module of the client, for pages of any origin; NotFoundError when it was not installed."""
    try:
        from tocsin.web import client

        text = client(request.url.path.removeprefix("/"))
    except (ModuleNotFoundError, FileNotFoundError):
        raise NotFoundError("this installation has no JavaScript client") from None
    return Response(text, 200, {"Access-Control-Allow-Origin": "*"}, "text/javascript; charset=utf-8")
