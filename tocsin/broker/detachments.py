"""Letting BE subscriptions go: a while after nobody wants them any more, and not while they may be asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tocsin.broker.cache import ResultCache
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import BackendSubscription, Holdings
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import DataRequests, Outbox, Reply
from tocsin.model import control
from tocsin.model.parts import parts

# What a BE subscription adds to a message beyond its parameters, at most; so there are never more than 8,000 in one.
NUMBER_BYTES: Final = 32


class Detachments:
    """BE subscriptions that nobody wants, from then until the data cluster has let them go.

    Those that the data cluster counts to this broker though nobody here wants them are *strangers*.

    Args:
        is_asked_for: whether a request that is not answered may be for this channel.
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataRequests,
        cache: ResultCache,
        limits: BrokerLimits,
        is_asked_for: Callable[[str], bool],
    ) -> None:
        self._holdings, self._outbox, self._data, self._cache = holdings, outbox, data, cache
        self._is_asked_for = is_asked_for
        self._lingering: Deadlines[BackendSubscription] = Deadlines(limits.linger_seconds)
        self._leaving: dict[int, None] = {}
        self._strange: dict[int, str] = {}
        self._strangers: Deadlines[int] = Deadlines(limits.stranger_seconds)

    def claim(self, backend: BackendSubscription) -> None:
        """Keeps a BE subscription held until it is released as often as it was claimed."""
        backend.claims += 1
        self._lingering.drop(backend)

    def release(self, backend: BackendSubscription) -> None:
        """Takes a claim back."""
        backend.claims -= 1
        self.linger(backend)

    def linger(self, backend: BackendSubscription) -> None:
        """Lets a BE subscription go after a while, if nobody wants it."""
        if not backend.claims and not backend.subscriptions:
            self._lingering.set(self._outbox.now, backend)

    def strangers(self, channel: str, bes: list[int]) -> None:
        """Takes note of what the data cluster counts to this broker though nobody here wants it, after a crash say.

        It is not detached soon: those who wanted it may be about to come back, and must not miss what is found.
        """
        for be in bes:
            if be not in self._holdings.backends and be not in self._leaving and be not in self._strange:
                self._strange[be] = channel
                self._strangers.set(self._outbox.now, be)

    def held(self, be: int) -> None:
        """This one is held again."""
        self._leaving.pop(be, None)

    def connected(self) -> None:
        """Asks again for what was to leave, unless it has been wanted again since."""
        leaving, self._leaving = list(self._leaving), {}
        self._detach([be for be in leaving if be not in self._holdings.backends])

    def due(self, now: float) -> None:
        """Detaches what nobody wants."""
        self._detach([backend.be for backend in list(self._lingering.due(now)) if self._let_go(backend)])
        self._detach([be for be in list(self._strangers.due(now)) if self._forget_stranger(be)])

    def wake(self) -> float:
        """When something is due."""
        return min(self._lingering.soonest, self._strangers.soonest)

    def tidy(self) -> None:
        """Forgets channels of which nothing is held."""
        idle = [name for name, channel in self._holdings.channels.items() if not channel.backends]
        for name in idle:
            if not self._is_asked_for(name):
                del self._holdings.channels[name]

    def _let_go(self, backend: BackendSubscription) -> bool:
        """Lets a BE subscription go, unless it is wanted or may be the answer to a request in other words."""
        if backend.claims or backend.subscriptions:
            return False
        if self._is_asked_for(backend.channel.name):
            self._lingering.set(self._outbox.now, backend)
            return False
        known = self._holdings.backends.get(backend.be) is backend
        self._forget(backend)
        return known

    def _forget_stranger(self, be: int) -> bool:
        """Strikes one off the list; whether it still is one. Should it be the answer to a request, it will be known or
        noticed again."""
        return not self._is_asked_for(self._strange.pop(be)) and be not in self._holdings.backends

    def _forget(self, backend: BackendSubscription) -> None:
        if self._holdings.backends.get(backend.be) is not backend:
            return
        del self._holdings.backends[backend.be], backend.channel.backends[backend.be]
        for words in backend.keys:
            del self._holdings.keys[words]
        backend.channel.wanted.pop(backend, None)
        self._cache.close(backend.be)
        self.tidy()

    def _detach(self, bes: list[int]) -> None:
        self._leaving.update(dict.fromkeys(bes))
        for part in parts(bes, lambda _: NUMBER_BYTES):
            self._ask_to_detach(part)

    def _ask_to_detach(self, bes: list[int]) -> None:
        self._data.ask(lambda id: control.Detach(id, bes), partial(self._detached, bes))

    def _detached(self, bes: list[int], answer: Reply) -> None:  # noqa: ARG002
        for be in bes:
            self._leaving.pop(be, None)
