"""Whom each publication of a set-up matches, and what that is in the coordinator's terms.

A publication's *signature* is the set of the subscribers whom it matches. All publications with the same signature are
one BE subscription, which just these subscribers hold: then what comes into a broker and what goes out of it are exact
sums, and :mod:`tocsin.balance` can be asked as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np

from tocsin.balance.model.workload import Floats, Int32s, Int64s, Workload
from tocsin.content.engine import Engine
from tocsin.experiment.padres.scenario import QuotePublication, QuoteScenario
from tocsin.overlay.dialogue import Note

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, eq=False)
class MatchedPublications:
    """Publications in the order of time, each with whom it matches, joined already or not.

    The subscribers of publication p, by their places in the set-up, are ``who[indptr[p]:indptr[p + 1]]``, rising.

    Args:
        times: when each is published, in seconds from the beginning.
        sizes: bytes of each, as it is sent to a subscriber.
    """

    times: Floats
    sizes: Int64s
    indptr: Int64s
    who: Int32s

    @classmethod
    def of(cls, scenario: QuoteScenario) -> MatchedPublications:
        """All that are published in a set-up."""
        engine = Engine()
        for number, subscriber in enumerate(scenario.subscribers):
            engine.add(number, subscriber.filter)
        published = list(scenario.publications())
        matched = [np.sort(engine.match(each.content)).astype(np.int32) for each in published]
        return cls(
            np.array([each.at for each in published], np.float64),
            np.array([_size(scenario, at, each) for at, each in enumerate(published)], np.int64),
            np.cumsum([0, *map(len, matched)], dtype=np.int64),
            np.concatenate([np.empty(0, np.int32), *matched]),
        )

    def __len__(self) -> int:
        return len(self.times)

    def between(self, since: float, until: float) -> MatchedPublications:
        """Those of a span, its beginning included."""
        first, last = np.searchsorted(self.times, (since, until)).tolist()
        indptr = self.indptr[first : last + 1]
        who = self.who[indptr[0] : indptr[-1]]
        return replace(
            self, times=self.times[first:last], sizes=self.sizes[first:last], indptr=indptr - indptr[0], who=who
        )

    def workload(self, subscribers: int, capacity: Floats, own: int = 0) -> Workload:
        """Signatures as BE subscriptions, for the first so many subscribers. Rates are bytes in all the time there is.

        Args:
            capacity: what each broker can take, in the same unit.
            own: besides, each subscriber holds a BE subscription of its own, of this rate.
        """
        signatures, rates = self._signatures(subscribers)
        lengths = [len(signature) for signature in signatures]
        holders = np.concatenate([np.empty(0, np.int32), *signatures])
        held = np.repeat(np.arange(len(signatures), dtype=np.int32), lengths)
        if own:
            holders = np.concatenate([holders, np.arange(subscribers, dtype=np.int32)])
            held = np.concatenate([held, np.arange(len(rates), len(rates) + subscribers, dtype=np.int32)])
            rates = [*rates, *[own] * subscribers]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(holders, minlength=subscribers))]).astype(np.int64)
        idx = held[np.argsort(holders, kind="stable")]
        return Workload(indptr, idx, np.array(rates, np.int64), len(capacity), capacity=capacity)

    def _signatures(self, subscribers: int) -> tuple[list[Int32s], list[int]]:
        """The distinct ones, and how many bytes have each."""
        found: dict[bytes, tuple[Int32s, int]] = {}
        for at, size in enumerate(self.sizes.tolist()):
            signature = self.who[self.indptr[at] : self.indptr[at + 1]]
            signature = signature[: np.searchsorted(signature, subscribers)]
            key = signature.tobytes()
            found[key] = signature, found[key][1] + size if key in found else size
        wanted = [(signature, size) for signature, size in found.values() if len(signature)]
        return [signature for signature, _ in wanted], [size for _, size in wanted]


def _size(scenario: QuoteScenario, at: int, publication: QuotePublication) -> int:
    return len(_encode(Note(scenario.published_to, at, publication.publisher, at, publication.content)))
