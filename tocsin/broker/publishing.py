"""Publishing through the broker: records of many subscribers travel on in one batch per feed."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from tocsin.broker.actions import PublishBatch
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.events import BatchFailed, BatchPublished
from tocsin.broker.holdings import Session
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import Outbox
from tocsin.model.bounds import DEPTH, too_deep
from tocsin.model.messages import Refusal, Share
from tocsin.model.subscriber import Publish, Published

# What the data cluster says of a batch that has something in it which it does not take.
_REFUSED: Final = frozenset({"invalid", "too-large", "refused"})


@dataclass(frozen=True)
class BatchEntry:
    """A request's part of a batch: ``count`` records from ``first`` on."""

    session: Session
    id: int
    first: int
    count: int


@dataclass(eq=False)
class FeedBatch:
    """Records of one feed: a share and a part for each request, the one to pass on and the other to answer by."""

    feed: str
    shares: list[Share] = field(default_factory=list)
    parts: list[BatchEntry] = field(default_factory=list)
    records: int = 0
    bytes: int = 0


class Publishing:
    """Collects, sends and answers publications.

    What can go wrong: too much is on its way (``busy``), a record is nested too deeply (``invalid``), whoever publishes
    may not (``forbidden``), a batch is refused as a whole (each request of it is sent again by itself, so that only
    the one at fault is refused), or fails otherwise (each request is told its error, and may be sent again: what was
    published twice is two records).
    """

    def __init__(self, outbox: Outbox, limits: BrokerLimits) -> None:
        self._outbox, self._limits = outbox, limits
        self._open: dict[str, FeedBatch] = {}
        self._deadlines: Deadlines[str] = Deadlines(limits.publish_seconds)
        self._sent: dict[int, FeedBatch] = {}
        self._last = 0
        self._bytes = 0

    def publish(self, session: Session, request: Publish) -> None:
        """Answered with Published when the data cluster has answered."""
        size = sum(len(memoryview(record)) for record in request.records)
        if not request.records:
            self._outbox.reply(session, Published(request.id, 0))
        elif any(too_deep(bytes(record)) for record in request.records):
            message = f"a record is nested more than {DEPTH} levels deep; nothing of this was published"
            self._outbox.refuse(session, "invalid", message, request.id)
        elif self._bytes + size > self._limits.publishing_bytes:
            message = "too much waits for the data cluster; publish this again later"
            self._outbox.refuse(session, "busy", message, request.id, 1.0)
        else:
            self._add(session, request, size)

    def published(self, event: BatchPublished) -> None:
        """Tells everyone what became of their records."""
        refusals = sorted(event.refused, key=attrgetter("index"))
        for number, part in enumerate(self._take(event.batch)):
            if reason := event.denied.get(number):
                self._outbox.refuse(part.session, "forbidden", reason, part.id)
                continue
            start = bisect_left(refusals, part.first, key=attrgetter("index"))
            end = bisect_left(refusals, part.first + part.count, key=attrgetter("index"))
            refused = [Refusal(refusal.index - part.first, refusal.reason) for refusal in refusals[start:end]]
            unlisted = event.unlisted.get(number, 0)
            accepted = part.count - len(refused) - unlisted
            self._outbox.reply(part.session, Published(part.id, accepted, refused, unlisted))

    def failed(self, event: BatchFailed) -> None:
        """Sends what may be refused only for others' sake again by itself, or tells everyone that nothing was taken."""
        batch = self._sent.get(event.batch)
        if batch and len(batch.parts) > 1 and event.code in _REFUSED:
            self._send_apart(event.batch, batch)
            return
        for part in self._take(event.batch):
            self._outbox.refuse(part.session, event.code, event.message, part.id, event.retry_after)

    def due(self, now: float) -> None:
        """Sends what has waited long enough."""
        for feed in self._deadlines.due(now):
            self._send(feed)

    def wake(self) -> float:
        """When something is due."""
        return self._deadlines.soonest

    def _add(self, session: Session, request: Publish, size: int) -> None:
        if request.feed not in self._open:
            self._open[request.feed] = FeedBatch(request.feed)
            self._deadlines.set(self._outbox.now, request.feed)
        batch, bearer = self._open[request.feed], session.bearer
        assert bearer, "whoever publishes has logged in"
        batch.parts.append(BatchEntry(session, request.id, batch.records, len(request.records)))
        # A copy, because a Raw keeps the whole message it came in.
        batch.shares.append(Share(bearer.name, [record.copy() for record in request.records], bearer.groups))
        batch.records += len(request.records)
        batch.bytes += size
        self._bytes += size
        if batch.bytes >= self._limits.publish_bytes:
            self._send(request.feed)

    def _send(self, feed: str) -> None:
        self._deadlines.drop(feed)
        self._last += 1
        batch = self._sent[self._last] = self._open.pop(feed)
        self._outbox.add(PublishBatch(self._last, feed, batch.shares))

    def _send_apart(self, number: int, batch: FeedBatch) -> None:
        del self._sent[number]
        self._bytes -= batch.bytes
        for part, share in zip(batch.parts, batch.shares, strict=True):
            size = sum(len(memoryview(record)) for record in share.records)
            self._last += 1
            alone = FeedBatch(batch.feed, [share], [replace(part, first=0)], part.count, size)
            self._sent[self._last] = alone
            self._bytes += size
            self._outbox.add(PublishBatch(self._last, batch.feed, alone.shares))

    def _take(self, number: int) -> list[BatchEntry]:
        batch = self._sent.pop(number, None)
        if batch is None:
            return []
        self._bytes -= batch.bytes
        return batch.parts
