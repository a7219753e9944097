"""PRESS at the offloading broker: what its subscriptions match, sampled while a session begins."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.content.engine import Engine
from tocsin.content.filter import Filter
from tocsin.content.traffic import Samples, added_samples
from tocsin.content.values import Publication
from tocsin.overlay.tuning import Tuning


class Profile:
    """Bit vectors of the broker's own filters and of the acceptor's covering set, and the rate of publications.

    The acceptor's covering set is subscribed to locally only: matched here, and asked of nobody.

    Args:
        now: when sampling begins.
        covering: the acceptor's covering set.
    """

    def __init__(self, now: float, covering: Iterable[Filter], tuning: Tuning) -> None:
        self._begun, self._ends = now, now + tuning.sampling_seconds
        self._samples: Samples[Filter] = Samples(tuning.samples)
        self._sizes: list[int] = []
        self._bytes: dict[int, int] = {}
        # Without their order, which would take long to find for many that do not cover each other.
        self._covering, self._engine = list(dict.fromkeys(covering)), Engine()
        for number, filter in enumerate(self._covering):
            self._engine.add(number, filter)
        self.incoming = 0.0

    @property
    def ends(self) -> float:
        """When sampling ends at the latest."""
        return self._ends

    @property
    def taken(self) -> int:
        """How many publications were sampled."""
        return self._samples.taken

    @property
    def complete(self) -> bool:
        """Whether there are as many samples as wanted."""
        return self._samples.complete

    def record(self, now: float, publication: Publication, matched: Iterable[Filter], size: int) -> None:
        """A publication of so many bytes came, and matched these of the broker's own filters."""
        if self.complete:
            return
        self._samples.record({*matched, *self._engine.matching(publication)})
        self._sizes.append(size)
        self.finish(now)

    def finish(self, now: float) -> None:
        """Sampling is over, or has come so far: i_r is over the time since it began."""
        self.incoming = self.taken / self.seconds(now) if now > self._begun else 0.0

    def seconds(self, now: float) -> float:
        """Since sampling began."""
        return now - self._begun

    def vector(self, filter: Filter) -> int:
        """Which samples a filter matched."""
        return self._samples.vector(filter)

    def covers(self, filter: Filter) -> bool:
        """Whether the acceptor's covering set does."""
        return len(self._engine.covering(filter)) > 0

    @property
    def received(self) -> int:
        """The vector of the acceptor's covering set: what it receives already."""
        return self._samples.union(self._covering)

    def rate(self, vector: int) -> float:
        """Equation 2: publications per second."""
        return self._samples.rate(vector, self.incoming)

    def added_rate(self, filter: Filter, received: int) -> float:
        """Publications per second that a filter brings to whom already receives these."""
        return self.rate(added_samples(self.vector(filter), received))

    def bandwidth(self, filter: Filter) -> float:
        """Bytes per second for each subscriber of a filter: the sizes of what it matched, of all that was sampled."""
        vector = self.vector(filter)
        return self.incoming * self._matched_bytes(vector) / self.taken if vector else 0.0

    def _matched_bytes(self, vector: int) -> int:
        if vector not in self._bytes:
            self._bytes[vector] = sum(size for bit, size in enumerate(self._sizes) if vector >> bit & 1)
        return self._bytes[vector]
