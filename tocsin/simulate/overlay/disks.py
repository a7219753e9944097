"""A head's disk, which outlives its process, and what the checker must know of all that ever was on it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from math import inf

from tocsin.model.histories import knows
from tocsin.overlay.messages import Routed
from tocsin.overlay.replay import KeptLog


@dataclass
class Life:
    """A log until it was lost: everything that was ever in it.

    ``parent`` is the number of the life from a copy of which it was restored, up to the offset ``shared``.
    ``confirmed`` has how many of its publications each publisher knew to be stored when this one began.
    """

    parent: int | None = None
    shared: int = 0
    confirmed: dict[str, int] = field(default_factory=dict)
    log: list[Routed] = field(default_factory=list)


@dataclass
class HeadDisk:
    """What is on a head's disk now, and its lives since the beginning, the present one last.

    ``stored`` is everything that was ever stored, with the number of its life. ``begun`` has for each incarnation of
    the head its life, and what the log said then of its history.
    """

    kept: KeptLog = field(default_factory=KeptLog)
    lives: list[Life] = field(default_factory=lambda: [Life()])
    stored: list[tuple[int, Routed]] = field(default_factory=list)
    begun: dict[str, tuple[int, KeptLog]] = field(default_factory=dict)
    _copy: tuple[int, KeptLog] | None = None

    @property
    def life(self) -> int:
        """The number of the present life."""
        return len(self.lives) - 1

    def begin(self, incarnation: str) -> None:
        """The head starts."""
        self.kept.begin(incarnation)
        self.begun[incarnation] = self.life, KeptLog(history=self.kept.history)

    def store(self, publication: Routed, most: int, now: float) -> None:
        """One more publication, of which only the latest are kept."""
        kept = self.kept
        kept.publications.append(publication)
        del kept.publications[:-most]
        kept.last = publication.offset
        kept.sequences[publication.publisher] = publication.sequence
        kept.seen[publication.publisher] = now
        self.lives[-1].log.append(publication)
        self.stored.append((self.life, publication))

    def forget(self, names: list[str], floor: int) -> None:
        """These publishers are known no more."""
        for name in names:
            del self.kept.sequences[name], self.kept.seen[name]
        self.kept.floor = floor

    def lose(self, confirmed: dict[str, int]) -> None:
        """Everything is gone."""
        self.kept = KeptLog()
        self.lives.append(Life(confirmed=confirmed))

    def copy(self) -> None:
        """Keeps a copy, for another day."""
        self._copy = self.life, deepcopy(self.kept)

    def restore(self, confirmed: dict[str, int]) -> None:
        """The copy takes the place of what is there, if there is one."""
        if self._copy:
            life, kept = self._copy
            self.kept = deepcopy(kept)
            self.lives.append(Life(life, kept.last, confirmed, self.lives[life].log[: kept.last]))

    def common(self, known: str, present: str) -> float:
        """Up to which offset the log is the same under two incarnations; -1 where nobody could know that it is."""
        (one, _), (two, then) = self.begun[known], self.begun[present]
        return self._common(one, two) if one == two or knows(then.history, known) else -1

    def _common(self, one: int, two: int) -> float:
        common = inf
        while one != two:
            later = self.lives[max(one, two)]
            if later.parent is None:
                return -1
            one, two, common = min(one, two), later.parent, min(common, later.shared)
        return common
