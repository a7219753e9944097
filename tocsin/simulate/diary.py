"""What a subscriber's application has had, and the verdict on it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msgspec import Struct

from tocsin.model.histories import DROPPED, History, common_execution, knows
from tocsin.model.subscriber import Note
from tocsin.simulate.cluster import DataClusterModel

_INCARNATION: Final = re.compile(rb'"i":"([^"]*)"')


class LostExecutions(NamedTuple):
    """Executions of which nothing is kept any more, as they are counted under an incarnation."""

    first: int
    last: int
    incarnation: str


class SubscriptionSpan(Struct):
    """A subscription from when it was confirmed till it ended: ``had`` are the executions delivered, in order, each
    with its incarnation; ``missed`` those of which it was told that nothing is kept any more, first and last, with the
    incarnation under which that was said."""

    be: int
    since: int
    live: bool
    incarnation: str = ""
    had: list[tuple[str, int]] = []
    missed: list[LostExecutions] = []
    ended: bool = False
    renumbered: bool = False

    @property
    def reached(self) -> int:
        """The application has had everything up to here, or knows that it is gone."""
        return max(self.had[-1][1] if self.had else self.since, self.missed[-1].last if self.missed else 0)

    def told_of(self, execution: int, history: History) -> bool:
        """Whether it knows that what an execution of the present history found is gone."""
        return any(
            gap.first <= execution <= min(gap.last, common_execution(history, gap.incarnation)) for gap in self.missed
        )


class Diary:
    """One subscriber's spans; it outlives the subscriber's program.

    ``undecided`` are subscriptions that a program was giving up when it crashed: they may be held or not, and the next
    program, which does not want them, may be told of them or not.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.spans: list[SubscriptionSpan] = []
        self._open: dict[int, SubscriptionSpan] = {}
        self._reached: dict[int, int] = {}
        self._stray: list[str] = []
        self._leaving: dict[int, int] = {}
        self._dropped: set[int] = set()
        self.undecided: set[int] = set()

    @property
    def open(self) -> dict[int, SubscriptionSpan]:
        """The subscriptions that are held, by number."""
        return self._open

    def begun(self, be: int, since: int, live: bool, incarnation: str = "") -> None:
        """A subscription is confirmed, or was resumed; said again it means nothing new, but may be live from now on."""
        if known := self._open.get(be):
            known.live = known.live or live
            return
        # A program that has crashed goes on from what it had acknowledged: never from later than what it has had.
        later = since > self._reached.get(be, since) and be not in self._dropped
        if later and not live:
            self._stray.append(f"{self.name} resumes {be} after {since}, but has had only up to {self._reached[be]}")
        self._dropped.discard(be)
        span = self._open[be] = SubscriptionSpan(be, since, live, incarnation)
        self.spans.append(span)

    def ended(self, be: int) -> None:
        """Nothing more is expected of a subscription."""
        self._reached.pop(be, None)
        if span := self._open.pop(be, None):
            span.ended = True

    def dropped(self, be: int) -> None:
        """Its channel was dropped. Should an older copy of the data bring it back, it may begin anew: a program that
        crashed before it was told does not know that it had ended."""
        self._dropped.add(be)

    def renumbered(self, was: int, be: int) -> None:
        """A subscription goes on under another number, which may be that of another one."""
        span = self._open.pop(was, None)
        if span is None:
            return
        if be in self._open:
            span.ended = True
        else:
            span.be, span.renumbered, self._open[be] = be, True, span

    def leaving(self, ref: int, be: int) -> None:
        """The application gives up what it calls ``ref``."""
        self._leaving[ref] = be

    def left(self, ref: int) -> None:
        """It is given up."""
        self._leaving.pop(ref, None)

    def wanted(self, be: int) -> None:
        """The application wants a subscription, whatever became of it before."""
        self.undecided.discard(be)

    def had(self, be: int, note: Note) -> None:
        """The application was given a note."""
        if be in self._open:
            self._open[be].had.append((_incarnation(note), note.e))
        else:
            self._stray.append(f"{self.name} was given execution {note.e} of {be}, which it does not hold")

    def missed(self, be: int, first: int, last: int, incarnation: str = "") -> None:
        """The application was told that nothing is kept of these executions."""
        if be in self._open:
            self._open[be].missed.append(LostExecutions(first, last, incarnation))
        else:
            self._stray.append(f"{self.name} was told of a gap in {be}, which it does not hold")

    def crashed(self) -> None:
        """The program has lost everything but what it can ask for again."""
        for be, span in self._open.items():
            self._reached[be] = max(self._reached.get(be, 0), span.reached)
            span.ended = True
        self._open.clear()
        self.undecided.update(self._leaving.values())
        self._leaving.clear()

    def wrong(self, cluster: DataClusterModel) -> list[str]:
        """What should not be: lost without a word, twice or out of order, of something not held, or a gap that is
        none."""
        undecided = {cluster.present(be) for be in self.undecided}
        decided = [span for span in self.spans if span.ended or cluster.present(span.be) not in undecided]
        found = [self._judge(span, cluster) for span in decided]
        found += [self._doubt(span, cluster) for span in decided if span.missed]
        return self._stray + [sentence for sentence in found if sentence]

    def _doubt(self, span: SubscriptionSpan, cluster: DataClusterModel) -> str | None:
        if span.be not in cluster.found:
            # Dropped, lost or not yet in the copy: what was told of it cannot be compared with anything any more.
            return None
        oldest, present = cluster.oldest(cluster.channels[span.be]), cluster.incarnation(cluster.channels[span.be])
        gaps = [gap for gap in span.missed if gap.incarnation == present]
        lies = [gap for gap in gaps if gap.last >= oldest]
        empty = [gap for gap in gaps if not any(gap.first <= each <= gap.last for each in cluster.found[span.be])]
        if not lies and not empty:
            return None
        return f"{self.name} was told of gaps in {span.be} where there are none: {[*lies, *empty]}"

    def _judge(self, span: SubscriptionSpan, cluster: DataClusterModel) -> str | None:
        """What counts in the present history must be there once and in order; what was had of one that counts no more
        was had once, too."""
        dues = [_due(span, cluster, since) for since in _possible_beginnings(span, cluster)]
        found = set(_executions_found(cluster, span.be))
        had = [each for each in span.had if each in found]
        strange = [each for each in span.had if each not in found and each not in cluster.ever[span.be]]
        fits = any(_fits(span, had, due) for due in dues)
        if fits and len(set(span.had)) == len(span.had) and (not strange or span.renumbered):
            return None
        missing = [each for each in dues[0] if each not in had]
        what = f"lost {missing[:5]}" if missing and not span.ended else "out of order or twice"
        what += f", strange {strange[:5]}" if strange else ""
        return f"{self.name} of subscription {span.be} after {span.since}: {what}; had {span.had[-10:]}"


class BlankDiary(Diary):
    """That of somebody on whom no verdict is passed: nothing is written down."""

    def begun(self, be: int, since: int, live: bool, incarnation: str = "") -> None:
        """Nobody will ask."""

    def wanted(self, be: int) -> None:
        """Nobody will ask."""

    def leaving(self, ref: int, be: int) -> None:
        """Nobody will ask."""

    def had(self, be: int, note: Note) -> None:
        """Nobody will ask."""

    def missed(self, be: int, first: int, last: int, incarnation: str = "") -> None:
        """Nobody will ask."""


def _incarnation(note: Note) -> str:
    """Under which a note was found, as its payload says."""
    found = _INCARNATION.search(bytes(note.payload))
    return found[1].decode() if found else ""


def _executions_found(cluster: DataClusterModel, be: int) -> list[tuple[str, int]]:
    """What was found for a BE subscription, as the present history has it: incarnation and execution."""
    present = cluster.present(be)
    channel = cluster.words[be][0]
    return [(cluster.under(channel, execution), execution) for execution in cluster.found.get(present, [])]


def _possible_beginnings(span: SubscriptionSpan, cluster: DataClusterModel) -> list[int]:
    """Where a subscription may have begun, in the present history.

    The copy that was restored need not know what it was counted under. A broker that has seen both goes on from the
    last execution they share; one that has not gives everything, and so does one that knew data which are lost.
    """
    channel = cluster.words[span.be][0]
    history, before = cluster.histories.get(channel, []), cluster.eras.get((channel, span.incarnation), [])
    known = common_execution(history, span.incarnation, before)
    begun = {min(span.since, each) for each in (known, common_execution(history, span.incarnation))}
    if not all(knows(history, under) for under, _ in span.had):
        begun.add(0)
    return sorted(begun - {DROPPED}, reverse=True) or [DROPPED]


def _due(span: SubscriptionSpan, cluster: DataClusterModel, since: int) -> list[tuple[str, int]]:
    """What of that is for a subscription which began after ``since``, and not said to be gone."""
    found, history = _executions_found(cluster, span.be), cluster.histories.get(cluster.words[span.be][0], [])
    due = [each for each in found if each[1] > since and not span.told_of(each[1], history)]
    return due if since != DROPPED else []


def _fits(span: SubscriptionSpan, had: list[tuple[str, int]], due: list[tuple[str, int]]) -> bool:
    """Whether somebody had what was due, in order: all of it, if nothing has ended or left something out."""
    if span.live:
        return sorted(set(had), key=had.index) == had and set(had) <= set(due)
    return had == (due[: len(had)] if span.ended else due)
