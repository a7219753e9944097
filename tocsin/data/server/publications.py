"""The call publishers make."""

from __future__ import annotations

from starlette.responses import Response

from tocsin.data.server.access import ADMIN, Access
from tocsin.data.server.call import Call
from tocsin.errors import ForbiddenError
from tocsin.http import body
from tocsin.http.answers import answer
from tocsin.http.failures import RefusedError
from tocsin.model.messages import SHARES


async def publish(call: Call) -> Response:
    """Hands records to a feed; when this answers, the accepted ones are on disk."""
    assert call.caller
    if body.content_type(call.request) == SHARES:
        call.caller.require(Access.BROKER)
        return answer(await call.cluster.publish_shares(call.name, await call.body()))
    if call.caller.role == Access.BROKER:
        raise ForbiddenError(
            f"a broker publishes what its subscribers do, each in their name: send shares, as {SHARES}"
        )
    received = await call.body()
    # An admin may publish for others; anybody else's bound columns are the name of the token.
    publisher = None if call.caller.role == ADMIN else call.caller.name
    published = await call.cluster.publish(call.name, received, call.request.headers.get("content-type", ""), publisher)
    if published.refused and not published.accepted:
        raise RefusedError(published.refused, published.unlisted)
    return answer(published)
