"""What an application connects with: subscriptions at edges, publications to a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from tocsin.errors import InvalidError
from tocsin.overlay.client.publishing import ContentPublisher
from tocsin.overlay.client.subscription import ContentSubscription
from tocsin.overlay.dialogue import Gap


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
        cursors: Mapping[str, int] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> ContentSubscription:
        """Subscribes to what a filter matches; returns when that has begun at a head.

        Args:
            where: such as ``symbol = 'YHOO' and high > 40``.
            cursors: those of an earlier subscription, to go on where it was.
            on_gap: called, in its place among the publications, for what is not kept any more.

        What can go wrong: the filter cannot be read (:class:`InvalidError`), no edge can be reached
        (:class:`UnavailableError`), the token is not taken (:class:`UnauthorizedError`).
        """
        name = f"{self.name}.{len(self._subscriptions) + 1}"
        subscription = ContentSubscription(name, where, self._urls, dict(cursors or {}), on_gap, self._token, self._ca)
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


def connect(*urls: str, name: str = "", token: str = "", ca: str = "") -> OverlayConnection:
    """An application at these brokers: edges to subscribe at, of which any will do, or a head to publish to.

    Args:
        urls: such as ``ws://127.0.0.1:8711``.
        name: its own, which no other program has at the same time; one is made up unless given. A publisher that comes
            again under its name goes on with its numbers.
        token: the clients' token of the overlay, if there is one.
        ca: the file of a private authority that is trusted.
    """
    if not urls or not all(url.startswith(("ws://", "wss://", "http://", "https://")) for url in urls):
        raise InvalidError("connect with the URL of an edge or a head, such as ws://127.0.0.1:8711")
    return OverlayConnection(urls, name or f"client-{token_hex(8)}", token, ca)
