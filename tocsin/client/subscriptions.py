"""The application's subscriptions: calls that wait for the core's answer, and where its notes go.

Equal calls share one subscription of the core's, and those that turn out to have the same number share one fan-out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tocsin.client.core.actions import Deliver, Missed
from tocsin.client.core.events import Event, Subscribe, Taken, Unsubscribe
from tocsin.client.subscription import Acknowledge, Fanout, Mark, OnGap, Subscription
from tocsin.errors import InvalidError
from tocsin.model.subscriber import Held


@dataclass(eq=False)
class SharedSubscription:
    """What was asked for under ``ref``. ``fanout`` is there once it is held; ``waiting`` calls are yet to see that."""

    key: bytes
    ref: int
    fanout: asyncio.Future[Fanout]
    held: Held | None = None
    waiting: int = 0
    readers: dict[Subscription, None] = field(default_factory=dict)

    def fail(self, error: Exception) -> None:
        """Says to the calls that wait why it will not be."""
        if not self.fanout.done():
            self.fanout.set_exception(error)
            self.fanout.exception()  # all who waited may have been cancelled

    def end(self, error: Exception | None) -> None:
        """Says to the readers why no more comes."""
        for reader in self.readers:
            reader.end(error)


class OpenSubscriptions:
    """Subscribing and unsubscribing.

    What can go wrong: it is refused, at once or later (the call, or the iteration, raises the reason); a call is
    cancelled (what it asked for may come about, and an equal call takes it up; notes wait for that); the broker gives
    a subscription another number (its readers go on with that).
    """

    def __init__(self, tell: Callable[[Event], None], refs: Iterator[int]) -> None:
        self._tell, self._refs = tell, refs
        self._shared: dict[bytes, SharedSubscription] = {}
        self._by_ref: dict[int, SharedSubscription] = {}
        self._fanouts: dict[int, Fanout] = {}
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
        shared = self._shared.get(key) or self._ask(key, channel, parameters, live)
        shared.waiting += 1
        try:
            fanout = await asyncio.shield(shared.fanout)
        finally:
            shared.waiting -= 1
        held = shared.held
        if held is not None:
            channel, parameters = held.channel, held.parameters
        reader = Subscription(channel, parameters, acknowledge, self.leave, on_gap)
        shared.readers[reader] = None
        fanout.join(reader)
        return reader

    async def leave(self, reader: Subscription) -> None:
        """Gives a subscription up; cancelling this does not keep it."""
        shared = next((shared for shared in self._shared.values() if reader in shared.readers), None)
        if shared is None:
            return
        del shared.readers[reader]
        reader.end(None)
        shared.fanout.result().part(reader)
        if shared.readers or shared.waiting:
            return
        self._forget(shared)
        left = self._leaving[shared.ref] = asyncio.get_running_loop().create_future()
        self._tell(Unsubscribe(shared.ref))
        await left

    def confirmed(self, ref: int, held: Held) -> None:
        """What was asked for is held, or has another number now."""
        shared = self._by_ref.get(ref)
        if shared is None:
            return
        fanout = self.resumed(held)
        for reader in shared.readers:
            reader.channel, reader.parameters = held.channel, held.parameters
        shared.held = held
        if shared.fanout.done():
            shared.fanout = asyncio.get_running_loop().create_future()
        shared.fanout.set_result(fanout)
        for reader in shared.readers:
            fanout.join(reader)

    def resumed(self, held: Held) -> Fanout:
        """The broker holds this; its notes are kept for whoever will want them."""
        if held.subscription not in self._fanouts:
            self._fanouts[held.subscription] = Fanout(held.subscription, held.cursor, self._take)
        return self._fanouts[held.subscription]

    def refused(self, ref: int, error: Exception) -> None:
        """What was asked for will not be held, or is no longer."""
        if shared := self._by_ref.get(ref):
            self._forget(shared)
            shared.fail(error)
            shared.end(error)

    def unsubscribed(self, ref: int) -> None:
        """A subscription is given up."""
        left = self._leaving.pop(ref, None)
        if left and not left.done():
            left.set_result(None)

    def ended(self, number: int) -> None:
        """Nothing comes any more under this number."""
        self._fanouts.pop(number, None)

    def deliver(self, deliver: Deliver | Missed) -> None:
        """A note has come, or word that some will not."""
        self._fanouts[deliver.subscription].put(deliver)

    def end(self, error: Exception | None, closed: Exception) -> None:
        """Everything is over: by ``error`` for who reads, and ``closed`` for who waits for an answer."""
        for shared in self._shared.values():
            shared.fail(error or closed)
            shared.end(error)
        for left in self._leaving.values():
            if not left.done():
                left.set_exception(error or closed)
        self._shared.clear()
        self._by_ref.clear()

    def _ask(self, key: bytes, channel: str, parameters: dict[str, Any], live: bool) -> SharedSubscription:
        shared = SharedSubscription(key, next(self._refs), asyncio.get_running_loop().create_future())
        self._shared[key] = self._by_ref[shared.ref] = shared
        self._tell(Subscribe(shared.ref, channel, parameters, live))
        return shared

    def _forget(self, shared: SharedSubscription) -> None:
        del self._shared[shared.key], self._by_ref[shared.ref]

    def _take(self, number: int, mark: Mark) -> None:
        epoch, execution = mark
        self._tell(Taken(number, execution, epoch))


def _key(channel: str, parameters: dict[str, Any], live: bool) -> bytes:
    """Equal for equal calls. Raises InvalidError when the parameters cannot be written as JSON."""
    try:
        return msgspec.json.encode([channel.casefold(), parameters, live], order="deterministic")
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise InvalidError(f"a parameter of {channel} cannot be written as JSON: {error}") from None
