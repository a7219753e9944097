"""What happens to the people of the demo, counted as it happens."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from tocsin.client.note import Note
from tocsin.demo.telling import Figures, Received


class Tally:
    """Counts from nothing."""

    def __init__(self) -> None:
        self.published: Counter[str] = Counter()
        self.withheld = self.moved = self.lost_connections = 0
        self.received: Received = defaultdict(lambda: defaultdict(list))
        self._notifications = self._reports = self._bytes = 0
        self._duplicates = self._disordered = 0
        self._waits: Counter[int] = Counter()

    def hold(self, who: str, subscription: int) -> None:
        """Somebody has subscribed."""
        self.received[who].setdefault(subscription, [])

    def receive(self, who: str, note: Note) -> None:
        """Somebody got a note; the client library should never give one twice, or an older one after a newer."""
        executions = self.received[who][note.subscription]
        if executions and note.execution <= executions[-1]:
            twice = note.execution in executions
            self._duplicates += twice
            self._disordered += not twice
        executions.append(note.execution)
        self._notifications += 1
        self._reports += len(note.rows)
        self._bytes += len(note.payload)
        self._wait(note.rows)

    def figures(self) -> Figures:
        """How it stands."""
        return Figures(
            notifications=self._notifications,
            reports=self._reports,
            bytes=self._bytes,
            published=dict(self.published),
            withheld=self.withheld,
            moved=self.moved,
            lost_connections=self.lost_connections,
            duplicates=self._duplicates,
            disordered=self._disordered,
            waits=dict(self._waits),
        )

    def _wait(self, rows: list[dict[str, Any]]) -> None:
        now = time.time()
        for row in rows:
            reported = datetime.fromisoformat(row["at"]).timestamp()
            self._waits[max(round((now - reported) * 10), 0)] += 1


def waited(waits: dict[int, int], part: float) -> float:
    """The seconds within which this part of the reports came; 0 when there were none."""
    wanted, seen = part * sum(waits.values()), 0
    for tenths in sorted(waits):
        seen += waits[tenths]
        if seen >= wanted:
            return tenths / 10
    return 0.0
