"""Which BE subscriptions somebody is there for: nothing is pulled for the others.

Whoever is away weighs nothing for the coordinator, and so must cost nothing here. What they miss stays in the data
cluster, and is pulled when they are back.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.broker.cache import Cache
from tocsin.broker.holdings import Line, Stay
from tocsin.broker.outbox import Outbox
from tocsin.model.coordination import AWAY_SECONDS


class Attendance:
    """Looks at a line when something is found for it, and not again before somebody comes.

    Whoever has lost their connection, or is prepared for, counts as there for ``away_seconds``: they are expected.
    """

    def __init__(self, outbox: Outbox, cache: Cache) -> None:
        self._outbox, self._cache = outbox, cache
        self.away_seconds = AWAY_SECONDS

    def expect(self, stay: Stay) -> None:
        """A subscriber has no connection, but may soon have one."""
        stay.expected = self._outbox.now + self.away_seconds

    def attended(self, lines: Iterable[Line]) -> dict[Line, None]:
        """Those of these lines for which something is to be pulled."""
        return {line: None for line in lines if self._is_attended(line)}

    def attend(self, line: Line) -> None:
        """Somebody is there, or expected, who holds a line: it is pulled for again. What comes after the horizon is
        kept, and no pull of what was heard of before may leave it out."""
        if line.idle:
            line.idle = False
            self._cache.close(line.be)
            self._cache.open(line.be, line.horizon)
            if line.channel.seen > line.channel.level:
                line.channel.wanted[line] = None

    def _is_attended(self, line: Line) -> bool:
        if line.idle or line.current or line.ahead or line.claims:
            return not line.idle
        line.idle = not any(one.stay.session or one.stay.expected > self._outbox.now for one in line.subscriptions)
        if line.idle:
            self._cache.close(line.be)
        return not line.idle
