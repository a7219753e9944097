"""Publishing: records gathered into batches, kept until answered, and sent again after a loss.

Who publishes now and then does not wait: a record goes at once when nothing is under way and the last batch went a
while ago. What comes soon after it is gathered.

A batch that was sent and not answered may have been stored, so its records may arrive twice; the data cluster stores
those with a primary key once. Records of one feed go out in order, but a batch that is repeated comes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

import msgspec
from msgspec import Raw

from tocsin.client.core.actions import Action, Published, RequestRefused
from tocsin.client.core.subscriptions import PASSING
from tocsin.client.core.window import RequestWindow
from tocsin.client.rules import Rules
from tocsin.model.bounds import DEPTH, too_deep
from tocsin.model.messages import LISTED, Refusal
from tocsin.model.subscriber import Error, Publish
from tocsin.schema.refusals import UNDECODABLE, describe_undecodable


@dataclass(slots=True)
class PublishCall:
    """One Publish of the application: how many of its records wait, and what became of the others."""

    waiting: int
    accepted: int = 0
    refused: list[Refusal] = field(default_factory=list)


@dataclass(slots=True)
class RecordBatch:
    """Records that travel together: ``owners[i]`` is the call of the i-th record, and its place there."""

    id: int
    feed: str
    since: float
    records: list[Raw] = field(default_factory=list)
    owners: list[tuple[int, int]] = field(default_factory=list)
    bytes: int = 0


class Publications:
    """Records on their way to their feeds.

    What can go wrong: too much waits (the call is refused as busy, nothing of it is kept); a record is no JSON or too
    large (it is refused, the others go); the broker cannot pass a batch on for a while (sent again later) or for good
    (its records are refused); an answer is lost with its connection (sent again).
    """

    def __init__(self, rules: Rules, ids: Iterator[int]) -> None:
        self._rules = rules
        self._ids = ids
        self._calls: dict[int, PublishCall] = {}
        self._filling: dict[str, RecordBatch] = {}
        self._window: RequestWindow[RecordBatch] = RequestWindow(rules.window)
        self._kept = 0
        self._closed_at = -inf

    @property
    def kept_bytes(self) -> int:
        """The bytes of records that have no answer yet."""
        return self._kept

    def publish(self, now: float, ref: int, feed: str, records: list[bytes]) -> list[Action]:
        """Takes records of the application, or refuses them."""
        size = sum(map(len, records))
        if self._kept and self._kept + size > self._rules.kept_bytes:
            return [
                RequestRefused(ref, "busy", f"{self._kept} bytes of records wait for their answer; publish again later")
            ]
        self._calls[ref] = call = PublishCall(len(records))
        for index, record in enumerate(records):
            if reason := self._fault(record):
                call.waiting -= 1
                call.refused.append(Refusal(index, reason))
            else:
                self._put(now, feed, record, (ref, index))
        return self._conclude(ref)

    def published(self, id: int, refused: list[Refusal]) -> list[Action]:
        """A batch is answered."""
        batch = self._window.get(id)
        if batch is None:
            return []
        return self._settle(batch, {refusal.index: refusal.reason for refusal in refused})

    def failed(self, now: float, error: Error) -> list[Action] | None:
        """A batch could not be passed on; None if it is not one of these."""
        batch = self._window.get(error.id)
        if batch is None:
            return None
        if error.code in PASSING or error.retry_after is not None:
            self._window.postpone(batch.id, now + (error.retry_after or self._rules.retry_seconds))
            return []
        return self._settle(batch, dict.fromkeys(range(len(batch.records)), error.message))

    def again(self) -> None:
        """There is a new connection: whatever has no answer is sent on it."""
        self._window.again()

    def due(self, now: float) -> list[Publish]:
        """The batches that are to be sent now."""
        if self._filling:
            idle = not self._window and now >= self._closed_at + self._rules.batch_seconds
            for batch in list(self._filling.values()):
                if idle or now >= batch.since + self._rules.batch_seconds:
                    self._close(now, batch)
        return [Publish(batch.id, batch.feed, batch.records) for batch in self._window.due(now)]

    def wake(self) -> float | None:
        """When a batch is due."""
        later = self._window.wake()
        if not self._filling:
            return later
        filled = min(batch.since for batch in self._filling.values()) + self._rules.batch_seconds
        return filled if later is None else min(filled, later)

    def _fault(self, record: bytes) -> str | None:
        if len(record) > self._rules.batch_bytes:
            return f"record of {len(record)} bytes; at most {self._rules.batch_bytes} are sent"
        try:
            msgspec.json.decode(record)
        except UNDECODABLE as error:
            return describe_undecodable(error)
        return f"nested more than {DEPTH} levels deep" if too_deep(record) else None

    def _put(self, now: float, feed: str, record: bytes, owner: tuple[int, int]) -> None:
        batch = self._filling.get(feed)
        if batch and batch.bytes + len(record) > self._rules.batch_bytes:
            self._close(now, batch)
            batch = None
        if batch is None:
            batch = self._filling[feed] = RecordBatch(next(self._ids), feed, now)
        batch.records.append(Raw(record))
        batch.owners.append(owner)
        batch.bytes += len(record)
        self._kept += len(record)
        # With no more than are listed when refused, each refusal can be told to whom it concerns.
        if len(batch.records) >= min(self._rules.batch_records, LISTED):
            self._close(now, batch)

    def _close(self, now: float, batch: RecordBatch) -> None:
        self._closed_at = now
        del self._filling[batch.feed]
        self._window.add(batch.id, batch)

    def _settle(self, batch: RecordBatch, reasons: dict[int, str]) -> list[Action]:
        self._window.settle(batch.id)
        self._kept -= batch.bytes
        for place, (ref, index) in enumerate(batch.owners):
            call = self._calls[ref]
            call.waiting -= 1
            if place in reasons:
                call.refused.append(Refusal(index, reasons[place]))
            else:
                call.accepted += 1
        refs = dict.fromkeys([ref for ref, _ in batch.owners])
        return [action for ref in refs for action in self._conclude(ref)]

    def _conclude(self, ref: int) -> list[Action]:
        call = self._calls[ref]
        if call.waiting:
            return []
        del self._calls[ref]
        return [Published(ref, call.accepted, sorted(call.refused, key=lambda refusal: refusal.index))]
