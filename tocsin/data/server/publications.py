"""The call publishers make."""

from __future__ import annotations

from starlette.responses import Response

from tocsin.data.server.call import Call
from tocsin.http.answers import answer
from tocsin.http.failures import RefusedError


async def publish(call: Call) -> Response:
    """Hands records to a feed; when this answers, the accepted ones are on disk."""
    received = await call.body()
    published = await call.cluster.publish(call.name, received, call.request.headers.get("content-type", ""))
    if published.refused and not published.accepted:
        raise RefusedError(published.refused)
    return answer(published)
