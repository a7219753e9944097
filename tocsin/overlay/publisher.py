"""A publisher: numbers its publications, and sends each again until its head has stored it."""

from __future__ import annotations

from collections import deque
from itertools import islice
from math import inf
from typing import Any, Final

import msgspec

from tocsin.content.values import Value, check_publication
from tocsin.errors import InvalidError
from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored, ToHead, ToPublisher
from tocsin.overlay.events import Tick

RETRY_SECONDS: Final = 1.0
MOST_UNCONFIRMED: Final = 1000
"""So many are under way at once; the rest waits here. A head that takes few at a time would be sent all the others for
nothing, and would answer pings only after them."""


class PublishContent(msgspec.Struct, frozen=True):
    """Publish something."""

    content: dict[str, Any]


class ClusterHeadOpened(msgspec.Struct, frozen=True):
    """The connection stands."""


class ClusterHeadLost(msgspec.Struct, frozen=True):
    """It is over, or could not be opened."""


class ClusterHeadSaid(msgspec.Struct, frozen=True):
    """The head says something."""

    message: ToPublisher


class OpenClusterHead(msgspec.Struct, frozen=True):
    """Open the connection; to be answered with ClusterHeadOpened or ClusterHeadLost."""


class SendClusterHead(msgspec.Struct, frozen=True):
    """Say something to the head."""

    message: ToHead


class Reject(msgspec.Struct, frozen=True):
    """Tell the application that a publication cannot be one, and why."""

    content: dict[str, Any]
    reason: str


PublisherEvent = PublishContent | ClusterHeadOpened | ClusterHeadLost | ClusterHeadSaid | Tick
PublisherAction = OpenClusterHead | SendClusterHead | Reject


class OverlayPublisher:
    """Publications of one name, which belongs to one head.

    What can go wrong: the head is not there, or dies. Then everything that it has not stored is sent again, in order.
    The program dies: what was not stored is lost with it; the next one goes on with the numbers that the head knows.
    The head has lost its log, or has another one: what was not stored gets new numbers, since those that the head knows
    are of other publications.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._actions: list[PublisherAction] = []
        self._waiting: deque[dict[str, Value]] = deque()
        # The number before the first that waits; not known before the head has said it.
        self._stored: int | None = None
        # The last number that was sent on this connection.
        self._sent = 0
        self._incarnation = ""
        self._ready = False
        self._retry = -inf

    @property
    def waiting(self) -> int:
        """How many publications are not stored yet."""
        return len(self._waiting)

    def handle(self, now: float, event: PublisherEvent) -> list[PublisherAction]:
        """What is to be done, in this order."""
        match event:
            case PublishContent(content):
                self._publish(content)
            case ClusterHeadSaid(message):
                self._said(message)
            case ClusterHeadOpened():
                self._do(SendClusterHead(Introduce(self.name, self._incarnation)))
            case ClusterHeadLost():
                self._ready, self._retry = False, now + RETRY_SECONDS
        if self._retry <= now:
            self._retry = inf
            self._do(OpenClusterHead())
        actions, self._actions = self._actions, []
        return actions

    def wake(self) -> float | None:
        """When it wants a Tick, at the latest."""
        return self._retry if self._retry < inf else None

    def _publish(self, content: dict[str, Any]) -> None:
        """A head would not take what cannot be a publication, so it gets no number."""
        try:
            self._waiting.append(check_publication(content))
        except InvalidError as error:
            self._do(Reject(content, str(error)))
            return
        self._send_on()

    def _said(self, message: ToPublisher) -> None:
        match message:
            case Known(sequence, incarnation, continued):
                if not continued:
                    self._stored = sequence
                self._confirm(sequence)
                self._ready, self._incarnation, self._sent = True, incarnation, 0
                self._send_on()
            case Stored(sequence):
                self._confirm(sequence)
                self._send_on()

    def _confirm(self, sequence: int) -> None:
        """Everything up to a number is stored; what of that does not wait here, another one of the name has sent."""
        if self._stored is None:
            return
        for _ in range(min(len(self._waiting), sequence - self._stored)):
            self._waiting.popleft()
        self._stored = max(self._stored, sequence)

    def _send_on(self) -> None:
        """Sends what waits and was not sent, as far as it may be under way."""
        if not self._ready or self._stored is None:
            return
        self._sent = max(self._sent, self._stored)
        for content in islice(self._waiting, self._sent - self._stored, MOST_UNCONFIRMED):
            self._sent += 1
            self._do(SendClusterHead(Publish(self._sent, content)))

    def _do(self, action: PublisherAction) -> None:
        self._actions.append(action)
