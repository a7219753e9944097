"""Who had to be told what: what was published and what everybody got, compared without asking the overlay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tocsin.apps.stocks.interests import fulfils
from tocsin.apps.stocks.quotes import Quote
from tocsin.content.predicate import Predicate
from tocsin.overlay.client import Note

Id = tuple[str, int]
"""A publication's: its publisher, and that one's number for it."""


@dataclass
class AlertVerdict:
    """How it went; ``strange`` is what came that nobody published, or that was not asked for."""

    delivered: int = 0
    lost: int = 0
    twice: int = 0
    disordered: int = 0
    strange: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether everybody got what was for them, once and in order."""
        return not (self.lost or self.twice or self.disordered or self.strange)


class AlertCheck:
    """What was published, by whom, and what everybody was told. ``alerts`` has what each wants.

    A publisher's publications are numbered 1, 2, 3 … and come to everybody in that order.
    """

    def __init__(self, alerts: Mapping[str, Sequence[Predicate]]) -> None:
        self._alerts = alerts
        self._published: dict[str, list[Quote]] = {}
        self._told: dict[str, set[Id]] = {person: set() for person in alerts}
        self._owed: dict[str, set[Id]] = {person: set() for person in alerts}
        self._looked: dict[str, int] = {}
        self._last: dict[tuple[str, str], int] = {}
        self._twice = self._disordered = self._strange = 0

    @property
    def published(self) -> int:
        """How many publications there were."""
        return sum(map(len, self._published.values()))

    @property
    def delivered(self) -> int:
        """How many notes people got."""
        return sum(map(len, self._told.values()))

    def publish(self, publisher: str, quote: Quote) -> None:
        """Something is about to be published."""
        self._published.setdefault(publisher, []).append(quote)

    def tell(self, person: str, note: Note) -> None:
        """Somebody got something."""
        id, last = (note.publisher, note.sequence), self._last.get((person, note.publisher), 0)
        if id in self._told[person]:
            self._twice += 1
        elif note.sequence < last:
            self._disordered += 1
        if not self._is_meant(person, note):
            self._strange += 1
        self._told[person].add(id)
        self._last[person, note.publisher] = max(last, note.sequence)

    def judge(self) -> AlertVerdict:
        """How it stands, if all that was published has been stored."""
        self._look_up()
        verdict = AlertVerdict(self.delivered, 0, self._twice, self._disordered, self._strange)
        for person in self._alerts:
            missing = sorted(self._owed[person] - self._told[person])
            verdict.lost += len(missing)
            if missing:
                publisher, sequence = missing[0]
                first = f"the first of them number {sequence} of {publisher}"
                verdict.missed.append(f"{person} has not got {len(missing):,} publications, {first}")
        return verdict

    def _look_up(self) -> None:
        """Finds who is owed what was published since the last time."""
        for publisher, quotes in self._published.items():
            first = self._looked.get(publisher, 0)
            for sequence, quote in enumerate(quotes[first:], first + 1):
                for person, predicates in self._alerts.items():
                    if fulfils(quote, predicates):
                        self._owed[person].add((publisher, sequence))
            self._looked[publisher] = len(quotes)

    def _is_meant(self, person: str, note: Note) -> bool:
        quotes = self._published.get(note.publisher, [])
        if not 0 < note.sequence <= len(quotes):
            return False
        quote = quotes[note.sequence - 1]
        return note.content == quote and fulfils(quote, self._alerts[person])
