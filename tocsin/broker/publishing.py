"""Publishing through the broker: records of many subscribers travel on in one batch per feed."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Raw

from tocsin.broker.actions import PublishBatch
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.events import BatchFailed, BatchPublished
from tocsin.broker.holdings import Session
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import Outbox
from tocsin.model.records import Refusal
from tocsin.model.subscriber import Publish, Published


@dataclass(frozen=True)
class Share:
    """A request's part of a batch: ``count`` records from ``first`` on."""

    session: Session
    id: int
    first: int
    count: int


@dataclass(eq=False)
class Batch:
    """Records of one feed, and whose they are."""

    feed: str
    records: list[Raw] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    bytes: int = 0


class Publishing:
    """Collects, sends and answers publications.

    What can go wrong: too much is on its way (``busy``), or a batch fails (each request is told its error, and may be
    sent again: what was published twice is two records).
    """

    def __init__(self, outbox: Outbox, limits: Limits) -> None:
        self._outbox, self._limits = outbox, limits
        self._open: dict[str, Batch] = {}
        self._deadlines: Deadlines[str] = Deadlines(limits.publish_seconds)
        self._sent: dict[int, Batch] = {}
        self._last = 0
        self._bytes = 0

    def publish(self, session: Session, request: Publish) -> None:
        """Answered with Published when the data cluster has answered."""
        size = sum(len(bytes(record)) for record in request.records)
        if not request.records:
            self._outbox.reply(session, Published(request.id, 0))
        elif self._bytes + size > self._limits.publishing_bytes:
            message = "too much waits for the data cluster; publish this again later"
            self._outbox.refuse(session, "busy", message, request.id, 1.0)
        else:
            self._add(session, request, size)

    def published(self, event: BatchPublished) -> None:
        """Tells everyone what became of their records."""
        for share in self._take(event.batch):
            last = share.first + share.count
            refused = [
                Refusal(refusal.index - share.first, refusal.reason)
                for refusal in event.refused
                if share.first <= refusal.index < last
            ]
            self._outbox.reply(share.session, Published(share.id, share.count - len(refused), refused))

    def failed(self, event: BatchFailed) -> None:
        """Tells everyone that nothing was taken."""
        for share in self._take(event.batch):
            self._outbox.refuse(share.session, event.code, event.message, share.id, event.retry_after)

    def due(self, now: float) -> None:
        """Sends what has waited long enough."""
        for feed in self._deadlines.due(now):
            self._send(feed)

    def wake(self) -> float:
        """When something is due."""
        return self._deadlines.soonest

    def _add(self, session: Session, request: Publish, size: int) -> None:
        if request.feed not in self._open:
            self._open[request.feed] = Batch(request.feed)
            self._deadlines.set(self._outbox.now, request.feed)
        batch = self._open[request.feed]
        batch.shares.append(Share(session, request.id, len(batch.records), len(request.records)))
        # A copy, because a Raw keeps the whole message it came in.
        batch.records += [record.copy() for record in request.records]
        batch.bytes += size
        self._bytes += size
        if batch.bytes >= self._limits.publish_bytes:
            self._send(request.feed)

    def _send(self, feed: str) -> None:
        self._deadlines.drop(feed)
        self._last += 1
        batch = self._sent[self._last] = self._open.pop(feed)
        self._outbox.add(PublishBatch(self._last, feed, batch.records))

    def _take(self, number: int) -> list[Share]:
        batch = self._sent.pop(number, None)
        if batch is None:
            return []
        self._bytes -= batch.bytes
        return batch.shares
