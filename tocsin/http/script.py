"""The JavaScript client, which every server that a page may reach hands out."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from starlette.responses import Response

from tocsin.errors import NotFoundError

PATH: Final = "/tocsin.js"


def script() -> Response:
    """The client as a module, for pages of any origin; NotFoundError when it was not installed."""
    try:
        text = files("tocsin.web").joinpath("tocsin.js").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        raise NotFoundError("this installation has no JavaScript client") from None
    return Response(text, 200, {"Access-Control-Allow-Origin": "*"}, "text/javascript; charset=utf-8")
