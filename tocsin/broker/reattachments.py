"""Attaching again what is held: after a new connection to the data cluster, and whenever it may have other data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Final

from tocsin.broker.detachments import NUMBER_BYTES, Detachments
from tocsin.broker.holdings import BackendSubscription, HeldChannel, Holdings
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import DataRequests, Outbox, Reply, to_be_repeated
from tocsin.broker.renewals import GONE, Renewals
from tocsin.model import control
from tocsin.model.parts import parts, size

# A data cluster that is being set up does not know its channels yet, or one is just being created anew.
_UNCERTAIN: Final = frozenset({"not-found", "conflict"})


class Reattachments:
    """Asks for BE subscriptions that are held, until they are attached or have ended.

    What can go wrong: the data cluster does not know the channel (it is asked again until it does: it may be empty for
    the moment, and nobody is to lose a subscription for that), is busy (it is asked again later), refuses one of many
    (they are asked for in halves, so that the others are not kept away), or for good (its subscriptions end).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataRequests,
        limits: BrokerLimits,
        renewals: Renewals,
        detachments: Detachments,
        heard: Callable[[HeldChannel], None],
    ) -> None:
        self._holdings, self._outbox, self._data, self._limits = holdings, outbox, data, limits
        self._renewals, self._detachments, self._heard = renewals, detachments, heard
        self._asking: dict[HeldChannel, None] = {}
        self._retries: list[tuple[float, HeldChannel, list[BackendSubscription]]] = []

    def ask(self, channel: HeldChannel, backends: list[BackendSubscription] | None = None) -> None:
        """Asks for these BE subscriptions once more, or for all: the data cluster may have another history than is
        known here."""
        wanted = list(channel.backends.values()) if backends is None else backends
        if channel not in self._asking:
            for part in parts(wanted, _weight):
                self._attach(channel, part)

    def miss(self, channel: HeldChannel, backends: list[BackendSubscription]) -> None:
        """The data cluster has no such channel at present: it is asked again after a while."""
        for backend in backends:
            backend.missing = True
        self._retry(channel, backends, self._limits.missing_seconds)

    def connected(self) -> None:
        """Asks for everything."""
        self._retries.clear()
        for channel in list(self._holdings.channels.values()):
            self.ask(channel)

    def lost(self) -> None:
        """Whatever was asked is not being answered."""
        self._asking.clear()

    def due(self, now: float) -> None:
        """Asks again for what it is time for."""
        retries, self._retries = self._retries, []
        for at, channel, backends in retries:
            if at <= now:
                self._attach(channel, [backend for backend in backends if channel.backends.get(backend.be) is backend])
            else:
                self._retries.append((at, channel, backends))

    def wake(self) -> float:
        """When something is due."""
        return min(at for at, _, _ in self._retries) if self._retries else inf

    def _attach(self, channel: HeldChannel, backends: list[BackendSubscription]) -> None:
        parameters = [backend.parameters for backend in backends]
        if not backends or not self._data.up:
            return
        self._asking[channel] = None
        known = channel.cursor(channel.seen) if channel.incarnation else None
        self._data.ask(
            lambda id: control.Attach(id, channel.name, parameters, known=known),
            partial(self._answered, channel, backends),
        )

    def _answered(self, channel: HeldChannel, backends: list[BackendSubscription], answer: Reply) -> None:
        self._asking.pop(channel, None)
        answer = self._renewals.unless_dropped(answer)
        if isinstance(answer, control.Attached):
            self._attached(channel, backends, answer)
        elif isinstance(answer, control.Error) and answer.code == GONE:
            for backend in backends:
                self._renewals.end(backend, GONE, answer.message)
            self._detachments.tidy()
        elif isinstance(answer, control.Error) and answer.code in _UNCERTAIN:
            self.miss(channel, backends)
        elif isinstance(answer, control.Error) and to_be_repeated(answer):
            self._retry(channel, backends, answer.retry_after or self._limits.retry_seconds)
        elif len(backends) > 1:
            # One that is refused must not keep the others away.
            middle = len(backends) // 2
            self._attach(channel, backends[:middle])
            self._attach(channel, backends[middle:])
        elif isinstance(answer, control.Error):
            self._renewals.end(backends[0], answer.code, answer.message)
            self._detachments.tidy()

    def _attached(self, channel: HeldChannel, backends: list[BackendSubscription], answer: control.Attached) -> None:
        """These BE subscriptions are held, though perhaps not as they were."""
        held = {
            backend: be
            for backend, be in zip(backends, answer.bes, strict=True)
            if channel.backends.get(backend.be) is backend
        }
        for backend, parameters in zip(backends, answer.parameters, strict=True):
            backend.missing, backend.parameters = False, parameters
        if channel.name != answer.channel:
            self._rename(channel, answer.channel)
        channel = self._renewals.learn(answer, held)
        self._holdings.hear_rates(self._outbox.now, answer.bes, answer.rates, answer.seconds)
        # Also for BE subscriptions attached since: notices up to this execution may still be on their way, and come too
        # late.
        channel.wanted.update((backend, None) for backend in channel.backends.values() if not backend.idle)
        channel.seen = max(channel.seen, answer.execution)
        self._heard(channel)
        self._detachments.strangers(channel.name, answer.bes)
        self._detachments.tidy()

    def _rename(self, channel: HeldChannel, name: str) -> None:
        """A channel was known in a spelling that is not the data cluster's."""
        del self._holdings.channels[channel.name]
        channel.name = name
        other = self._holdings.channels.setdefault(name, channel)
        if other is not channel:
            for backend in channel.backends.values():
                backend.channel = other
            other.backends.update(channel.backends)
            channel.backends.clear()

    def _retry(self, channel: HeldChannel, backends: list[BackendSubscription], seconds: float) -> None:
        self._retries.append((self._outbox.now + seconds, channel, backends))


def _weight(backend: BackendSubscription) -> int:
    return size(backend.parameters) + NUMBER_BYTES
