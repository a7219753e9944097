"""The server of a data cluster that stands by: it says so, and where the active one is."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tocsin.errors import UnavailableError
from tocsin.http.answers import answer
from tocsin.http.envelope import Envelope
from tocsin.http.failures import failure
from tocsin.http.listening import ADDRESS, is_loopback
from tocsin.http.origins import Guard, Origins
from tocsin.model.messages import BareHealth
from tocsin.settings import Settings


def create_standby_app(settings: Settings) -> Starlette:
    """Answers every call with status 503, so that whoever has several addresses tries the next one."""

    async def health(_: Request) -> Response:
        return answer(BareHealth("standby"), UnavailableError.status)

    async def other(_request: Request, _error: Exception) -> Response:
        return failure(UnavailableError(f"this data cluster stands by; {_active(settings)}"))

    return Starlette(
        routes=[Route("/health", health)],
        middleware=[Middleware(Envelope), Middleware(Guard, origins=Origins("data", settings.data.origins, False))],
        exception_handlers={HTTPException: other},
    )


def _active(settings: Settings) -> str:
    """Where the active one is, as far as it has written that down."""
    try:
        url = (settings.data.directory / ADDRESS).read_text(encoding="utf-8").strip()
        host = urlsplit(url).hostname or ""
    except (OSError, ValueError):
        return "there is no active one at present; try again in a moment"
    if is_loopback(host) and not is_loopback(settings.data.host):
        # It listens on all addresses of its machine, and has written down the one that is good there only.
        return "another one is active"
    return f"the active one listens on {url}"
