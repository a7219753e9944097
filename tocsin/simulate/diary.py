"""What a subscriber's application has had, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.simulate.cluster import DataCluster


@dataclass(slots=True)
class Span:
    """A subscription from when it was confirmed till it ended: ``had`` are the executions delivered, in order, and
    ``missed`` those of which it was told that nothing is kept any more, first and last."""

    be: int
    since: int
    live: bool
    had: list[int] = field(default_factory=list)
    missed: list[tuple[int, int]] = field(default_factory=list)
    ended: bool = False

    @property
    def reached(self) -> int:
        """The application has had everything up to here, or knows that it is gone."""
        return max(self.had[-1] if self.had else self.since, self.missed[-1][1] if self.missed else 0)

    def told_of(self, execution: int) -> bool:
        """Whether it knows that what an execution found is gone."""
        return any(first <= execution <= last for first, last in self.missed)


class Diary:
    """One subscriber's spans; it outlives the subscriber's program.

    ``undecided`` are subscriptions that a program was giving up when it crashed: they may be held or not, and the next
    program, which does not want them, may be told of them or not.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.spans: list[Span] = []
        self._open: dict[int, Span] = {}
        self._reached: dict[int, int] = {}
        self._stray: list[str] = []
        self._leaving: dict[int, int] = {}
        self.undecided: set[int] = set()

    @property
    def open(self) -> dict[int, Span]:
        """The subscriptions that are held, by number."""
        return self._open

    def begun(self, be: int, since: int, live: bool) -> None:
        """A subscription is confirmed, or was resumed; said again it means nothing new, but may be live from now on."""
        if be in self._open:
            self._open[be].live = self._open[be].live or live
            return
        # A program that has crashed goes on from what it had acknowledged: never from later than what it has had.
        if be in self._reached and since > self._reached[be] and not live:
            self._stray.append(f"{self.name} resumes {be} after {since}, but has had only up to {self._reached[be]}")
        self._open[be] = Span(be, since, live)
        self.spans.append(self._open[be])

    def ended(self, be: int) -> None:
        """Nothing more is expected of a subscription."""
        self._reached.pop(be, None)
        if span := self._open.pop(be, None):
            span.ended = True

    def leaving(self, ref: int, be: int) -> None:
        """The application gives up what it calls ``ref``."""
        self._leaving[ref] = be

    def left(self, ref: int) -> None:
        """It is given up. One that an earlier program held may be held still, if it was given up before it was asked
        for."""
        be = self._leaving.pop(ref, None)
        if be in self._reached and be not in self._open:
            self.undecided.add(be)

    def wanted(self, be: int) -> None:
        """The application wants a subscription, whatever became of it before."""
        self.undecided.discard(be)

    def had(self, be: int, execution: int) -> None:
        """The application was given a note."""
        if be in self._open:
            self._open[be].had.append(execution)
        else:
            self._stray.append(f"{self.name} was given execution {execution} of {be}, which it does not hold")

    def missed(self, be: int, first: int, last: int) -> None:
        """The application was told that nothing is kept of these executions."""
        if be in self._open:
            self._open[be].missed.append((first, last))
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

    def wrong(self, cluster: DataCluster) -> list[str]:
        """What should not be: lost without a word, twice or out of order, of something not held, or a gap that is
        none."""
        decided = [span for span in self.spans if span.ended or span.be not in self.undecided]
        found = [self._judge(span, cluster.found[span.be]) for span in decided]
        found += [self._doubt(span, cluster) for span in decided]
        return self._stray + [sentence for sentence in found if sentence]

    def _doubt(self, span: Span, cluster: DataCluster) -> str | None:
        oldest = cluster.oldest(cluster.channels[span.be])
        lies = [(first, last) for first, last in span.missed if last >= oldest]
        empty = [gap for gap in span.missed if not any(gap[0] <= each <= gap[1] for each in cluster.found[span.be])]
        if not lies and not empty:
            return None
        return f"{self.name} was told of gaps in {span.be} where there are none: {[*lies, *empty]}"

    def _judge(self, span: Span, found: list[int]) -> str | None:
        due = [execution for execution in found if execution > span.since and not span.told_of(execution)]
        if span.live:
            fits = sorted(set(span.had)) == span.had and set(span.had) <= set(due)
        else:
            fits = span.had == (due[: len(span.had)] if span.ended else due)
        if fits:
            return None
        missing, strange = sorted(set(due) - set(span.had)), sorted(set(span.had) - set(due))
        what = f"lost {missing[:5]}" if missing and not span.ended else "out of order or twice"
        what += f", strange {strange[:5]}" if strange else ""
        return f"{self.name} of subscription {span.be} after {span.since}: {what}; had {span.had[-10:]}"
