"""Calls that look: lists, health, and the documentation itself."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.data.language.forms import Listing
from tocsin.data.server.call import Call, Handler, Query
from tocsin.errors import InvalidError
from tocsin.http.answers import answer
from tocsin.model import messages
from tocsin.model.quoting import quote_value
from tocsin.model.slices import Draining

LIMIT: Final = Query(
    "limit", "The most items to give; default 1000.", {"type": "integer", "minimum": 0, "default": 1000}
)
_POLICY: Final = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"


def listing(what: Listing) -> Handler:
    """The call that lists things of one kind."""

    async def list_things(call: Call) -> Response:
        limit = _limit(call.request.query_params.get("limit", "1000"))
        return answer(await call.cluster.show(what.value, limit))

    return list_things


async def health(call: Call) -> Response:
    """How the data cluster is: its bare status for anyone, all of it for a caller with a token."""
    found = await call.cluster.health()
    told = found if call.caller else messages.BareHealth(found.status)
    return answer(told, 503 if found.status == "starting" else 200)


async def slices(call: Call) -> Response:
    """Who owns which slice."""
    return answer(await call.cluster.slices())


async def drain_node(call: Call) -> Response:
    """Has a processing node emptied, or no more."""
    wanted = await call.decode(Draining)
    await call.cluster.drain_node(call.name, wanted.on)
    return answer(wanted)


async def openapi(call: Call) -> Response:
    """The OpenAPI document."""
    return Response(call.request.app.state.openapi, media_type="application/json")


async def page(_: Call) -> Response:
    """The page that shows it."""
    text = files("tocsin.data.server").joinpath("page.html").read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY})


async def home(_: Call) -> Response:
    """Leads to the page."""
    return RedirectResponse("/docs")


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidError(f"limit is {quote_value(text)}: it must be a whole number from 0")
    return int(text)
