"""What an application connects with: subscriptions at edges, publications to a head."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import msgspec

from tocsin.content.language import parse
from tocsin.errors import InvalidError
from tocsin.overlay.client.publishing import ContentPublisher
from tocsin.overlay.client.subscription import ContentSubscription
from tocsin.overlay.dialogue import Gap, HeadCursor


class OverlayConnection:
    """An application at some brokers of an overlay, made by :func:`connect`."""

    def __init__(self, urls: tuple[str, ...], name: str, token: str, ca: str) -> None:
        self.name, self._urls, self._token, self._ca = name, urls, token, ca
        self._subscriptions: list[ContentSubscription] = []
        self._publisher: ContentPublisher | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def subscribe(
        self,
        where: str,
        *,
        cursors: Mapping[str, HeadCursor] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> ContentSubscription:
        """Subscribes to what a filter matches; returns when that has begun at a head.

        Args:
            where: such as ``symbol = 'YHOO' and high > 40``.
            cursors: those of an earlier subscription, to go on where it was, also as JSON has them. One of
                ``HeadCursor(0)`` begins with what the head still keeps.
            on_gap: called, in its place among the publications, for what is not kept any more.

        What can go wrong: the filter cannot be read (:class:`FilterError`, with line and column), no edge can be
        reached (:class:`UnavailableError`), this is no edge (:class:`InvalidError`), the token is not taken
        (:class:`UnauthorizedError`).
        """
        parse(where)
        name = f"{self.name}+{len(self._subscriptions) + 1}"
        kept = _cursors(cursors or {})
        subscription = ContentSubscription(name, where, self._urls, kept, on_gap, self._token, self._ca)
        self._subscriptions.append(subscription)
        await subscription.start()
        return subscription

    async def publish(self, content: Mapping[str, Any]) -> None:
        """Publishes to the head that this is connected to; returns when it is stored.

        What can go wrong: it cannot be a publication, or this is no head (:class:`InvalidError`); the head cannot be
        reached at first (:class:`UnavailableError`), the token is not taken (:class:`UnauthorizedError`).
        """
        if self._publisher is None:
            self._publisher = ContentPublisher(self.name, self._urls[0], self._token, self._ca)
        await self._publisher.publish(content)

    async def close(self) -> None:
        """Leaves all brokers."""
        for subscription in self._subscriptions:
            await subscription.close()
        if self._publisher:
            await self._publisher.close()


def _cursors(cursors: Mapping[str, HeadCursor]) -> dict[str, HeadCursor]:
    try:
        return msgspec.convert(dict(cursors), dict[str, HeadCursor])
    except msgspec.ValidationError as error:
        raise InvalidError(f"these are no cursors of a subscription: {error}") from None


def connect(*urls: str, name: str = "", client_token: str = "", ca: str = "") -> OverlayConnection:
    """An application at these brokers: edges to subscribe at, of which any will do, or a head to publish to.

    :func:`tocsin.connect` does the same with ``ws://`` URLs.

    Args:
        urls: such as ``ws://127.0.0.1:8711``.
        name: its own, which no other program has at the same time; one is made up unless given. A publisher that comes
            again under its name goes on with its numbers. With a signed token it is that of the token, or begins with
            it and a ``+``.
        client_token: the clients' token of the overlay, if there is one, or one that a coordinator has signed.
        ca: the file of a private authority that is trusted.
    """
    if not urls or not all(url.startswith(("ws://", "wss://", "http://", "https://")) for url in urls):
        raise InvalidError("connect with the URL of an edge or a head, such as ws://127.0.0.1:8711")
    return OverlayConnection(urls, name or f"{_bearer(client_token)}{token_hex(8)}", client_token, ca)


def _bearer(token: str) -> str:
    """What a made-up name begins with: that of whom a signed token was made for, which only a broker can judge."""
    body = token.partition(".")[0]
    try:
        claims = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=dict[str, Any])
    except (ValueError, msgspec.MsgspecError):
        return "client-"
    return f"{claims.get('name', 'client')}+"
