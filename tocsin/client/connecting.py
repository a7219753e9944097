"""The front door for programs: :func:`connect`, to a coordinator's network or to an overlay.

Which of them a URL leads to is told by its scheme: a coordinator is asked over HTTP, so it has an ``http://`` URL, and
brokers of an overlay have ``ws://`` ones, as they say when they begin to listen. So nothing has to be asked first, and
what a program gets does not depend on what happens to answer there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, overload

from tocsin.client import subscriber
from tocsin.client.coordinator import Location
from tocsin.client.rules import Rules
from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from tocsin.overlay.client import OverlayConnection

_OVERLAY: Final = ("ws://", "wss://")


@overload
def connect(
    coordinator: str, token: str, *, location: Location | None = None, rules: Rules | None = None, ca: str = ""
) -> subscriber.Subscriber: ...


@overload
def connect(
    brokers: str | Sequence[str], /, *, name: str = "", client_token: str = "", ca: str = ""
) -> OverlayConnection: ...


def connect(
    coordinator: str | Sequence[str],
    token: str = "",
    *,
    location: Location | None = None,
    rules: Rules | None = None,
    name: str = "",
    client_token: str = "",
    ca: str = "",
) -> subscriber.Subscriber | OverlayConnection:
    """A program's connection, to be used in its ``async with``.

    With a coordinator's URL, such as ``http://localhost:8700``, and a subscriber's token it is one to channels:
    :func:`tocsin.client.subscriber.connect` says all of it::

        async with tocsin.connect("http://localhost:8700", token) as me:
            floods = await me.subscribe("EmergenciesOfType", event="flood")

    With the URL of an overlay's edge or head, such as ``ws://localhost:8711``, it is one by content; of several edges
    any will do. :func:`tocsin.overlay.client.connect` says all of it::

        async with tocsin.connect("ws://localhost:8711") as me:
            quotes = await me.subscribe(where="symbol = 'YHOO' and high > 40")
    """
    urls = [coordinator] if isinstance(coordinator, str) else list(coordinator)
    if urls and all(url.startswith(_OVERLAY) for url in urls):
        if token or location or rules:
            raise InvalidError(
                "an overlay knows no token of a subscriber, no location and no rules: name its clients' token, if it "
                "has one, as client_token=…; if this is to be a coordinator, its URL is like http://localhost:8700"
            )
        from tocsin.overlay.client import connect as connect_overlay

        return connect_overlay(*urls, name=name, client_token=client_token, ca=ca)
    if not isinstance(coordinator, str) or name or client_token:
        raise InvalidError(
            f"{', '.join(urls) or 'nothing'} is no edge or head of an overlay, whose URLs begin with ws:// or wss://; "
            "several URLs, name= and client_token= are for these"
        )
    return subscriber.connect(coordinator, token, location=location, rules=rules, ca=ca)
