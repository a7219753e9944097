"""Which BE subscriptions somebody is there for: nothing is pulled for the others.

Whoever is away weighs nothing for the coordinator, and so must cost nothing here. What they miss stays in the data
cluster, and is pulled when they are back.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.broker.cache import ResultCache
from tocsin.broker.holdings import BackendSubscription, Stay
from tocsin.broker.outbox import Outbox
from tocsin.model.coordination import AWAY_SECONDS


class Demand:
    """Looks at a BE subscription when something is found for it, and not again before somebody comes.

    Whoever has lost their connection, or is prepared for, counts as there for ``away_seconds``: they are expected.
    """

    def __init__(self, outbox: Outbox, cache: ResultCache) -> None:
        self._outbox, self._cache = outbox, cache
        self.away_seconds = AWAY_SECONDS

    def expect(self, stay: Stay) -> None:
        """A subscriber has no connection, but may soon have one."""
        stay.expected = self._outbox.now + self.away_seconds

    def select(self, backends: Iterable[BackendSubscription]) -> dict[BackendSubscription, None]:
        """Those of these BE subscriptions for which something is to be pulled."""
        return {backend: None for backend in backends if self._is_wanted(backend)}

    def resume(self, backend: BackendSubscription) -> None:
        """Somebody is there, or expected, who holds a BE subscription: it is pulled for again. What comes after the
        horizon is kept, and no pull of what was heard of before may leave it out."""
        if backend.idle:
            backend.idle = False
            self._cache.close(backend.be)
            self._cache.open(backend.be, backend.horizon)
            if backend.channel.seen > backend.channel.level:
                backend.channel.wanted[backend] = None

    def _is_wanted(self, backend: BackendSubscription) -> bool:
        if backend.idle or backend.current or backend.ahead or backend.claims:
            return not backend.idle
        backend.idle = not any(
            one.stay.session or one.stay.expected > self._outbox.now for one in backend.subscriptions
        )
        if backend.idle:
            self._cache.close(backend.be)
        return not backend.idle
