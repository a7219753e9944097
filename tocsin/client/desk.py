"""The application's subscriptions: calls that wait for the core's answer, and where its notes go.

Equal calls share one wish of the core's, and subscriptions that turn out to have the same number share one box.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tocsin.client.actions import Deliver, Missed
from tocsin.client.events import Event, Subscribe, Taken, Unsubscribe
from tocsin.client.subscription import Acknowledge, Box, Mark, OnGap, Subscription
from tocsin.errors import InvalidError
from tocsin.model.subscriber import Held


@dataclass(eq=False)
class Wish:
    """What was asked for under ``ref``. ``box`` is there once it is held; ``waiting`` calls are yet to see that."""

    key: bytes
    ref: int
    box: asyncio.Future[Box]
    held: Held | None = None
    waiting: int = 0
    readers: dict[Subscription, None] = field(default_factory=dict)

    def fail(self, error: Exception) -> None:
        """Says to the calls that wait why it will not be."""
        if not self.box.done():
            self.box.set_exception(error)
            self.box.exception()  # all who waited may have been cancelled

    def end(self, error: Exception | None) -> None:
        """Says to the readers why no more comes."""
        for reader in self.readers:
            reader.end(error)


class Desk:
    """Subscribing and unsubscribing.

    What can go wrong: it is refused, at once or later (the call, or the iteration, raises the reason); a call is
    cancelled (what it asked for may come about, and an equal call takes it up; notes wait for that); the broker gives
    a subscription another number (its readers go on with that).
    """

    def __init__(self, tell: Callable[[Event], None], refs: Iterator[int]) -> None:
        self._tell, self._refs = tell, refs
        self._wishes: dict[bytes, Wish] = {}
        self._by_ref: dict[int, Wish] = {}
        self._boxes: dict[int, Box] = {}
        self._leaving: dict[int, asyncio.Future[None]] = {}

    async def subscribe(
        self,
        channel: str,
        parameters: dict[str, Any],
        live: bool,
        acknowledge: Acknowledge,
        on_gap: OnGap | None = None,
    ) -> Subscription:
        """A subscription, when it is held."""
        key = _key(channel, parameters, live)
        wish = self._wishes.get(key) or self._ask(key, channel, parameters, live)
        wish.waiting += 1
        try:
            box = await asyncio.shield(wish.box)
        finally:
            wish.waiting -= 1
        held = wish.held
        if held is not None:
            channel, parameters = held.channel, held.parameters
        reader = Subscription(channel, parameters, acknowledge, self.leave, on_gap)
        wish.readers[reader] = None
        box.join(reader)
        return reader

    async def leave(self, reader: Subscription) -> None:
        """Gives a subscription up; cancelling this does not keep it."""
        wish = next((wish for wish in self._wishes.values() if reader in wish.readers), None)
        if wish is None:
            return
        del wish.readers[reader]
        reader.end(None)
        wish.box.result().part(reader)
        if wish.readers or wish.waiting:
            return
        self._forget(wish)
        left = self._leaving[wish.ref] = asyncio.get_running_loop().create_future()
        self._tell(Unsubscribe(wish.ref))
        await left

    def confirmed(self, ref: int, held: Held) -> None:
        """A wish has come true, or has another number now."""
        wish = self._by_ref.get(ref)
        if wish is None:
            return
        box = self.resumed(held)
        for reader in wish.readers:
            reader.channel, reader.parameters = held.channel, held.parameters
        wish.held = held
        if wish.box.done():
            wish.box = asyncio.get_running_loop().create_future()
        wish.box.set_result(box)
        for reader in wish.readers:
            box.join(reader)

    def resumed(self, held: Held) -> Box:
        """The broker holds this; its notes are kept for whoever will want them."""
        if held.subscription not in self._boxes:
            self._boxes[held.subscription] = Box(held.subscription, held.cursor, self._take)
        return self._boxes[held.subscription]

    def refused(self, ref: int, error: Exception) -> None:
        """A wish will not come true, or is no longer."""
        if wish := self._by_ref.get(ref):
            self._forget(wish)
            wish.fail(error)
            wish.end(error)

    def unsubscribed(self, ref: int) -> None:
        """A subscription is given up."""
        left = self._leaving.pop(ref, None)
        if left and not left.done():
            left.set_result(None)

    def ended(self, number: int) -> None:
        """Nothing comes any more under this number."""
        self._boxes.pop(number, None)

    def deliver(self, deliver: Deliver | Missed) -> None:
        """A note has come, or word that some will not."""
        self._boxes[deliver.subscription].put(deliver)

    def end(self, error: Exception | None, closed: Exception) -> None:
        """Everything is over: by ``error`` for who reads, and ``closed`` for who waits for an answer."""
        for wish in self._wishes.values():
            wish.fail(error or closed)
            wish.end(error)
        for left in self._leaving.values():
            if not left.done():
                left.set_exception(error or closed)
        self._wishes.clear()
        self._by_ref.clear()

    def _ask(self, key: bytes, channel: str, parameters: dict[str, Any], live: bool) -> Wish:
        wish = Wish(key, next(self._refs), asyncio.get_running_loop().create_future())
        self._wishes[key] = self._by_ref[wish.ref] = wish
        self._tell(Subscribe(wish.ref, channel, parameters, live))
        return wish

    def _forget(self, wish: Wish) -> None:
        del self._wishes[wish.key], self._by_ref[wish.ref]

    def _take(self, number: int, mark: Mark) -> None:
        epoch, execution = mark
        self._tell(Taken(number, execution, epoch))


def _key(channel: str, parameters: dict[str, Any], live: bool) -> bytes:
    """Equal for equal calls. Raises InvalidError when the parameters cannot be written as JSON."""
    try:
        return msgspec.json.encode([channel.casefold(), parameters, live], order="deterministic")
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise InvalidError(f"a parameter of {channel} cannot be written as JSON: {error}") from None
