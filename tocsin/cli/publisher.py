"""Sending records in batches: how many at a time, how fast, and how often again when the server is busy or away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tocsin.cli.connection import RemoteError, RemoteServer
from tocsin.cli.records import SourceRecord
from tocsin.errors import BusyError, StorageError, TocsinError, UnavailableError
from tocsin.model.messages import Published

MOST_BATCH_BYTES: Final = 4 << 20
REASONS_KEPT: Final = 10
PATIENCE_SECONDS: Final = 60.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_PASSING: Final = (UnavailableError.status, StorageError.status, 502, 504)

Batch = list[SourceRecord]


def batches(records: Iterable[SourceRecord], most: int, most_bytes: int = MOST_BATCH_BYTES) -> Iterator[Batch]:
    """Records in batches of up to ``most``, ended early at ``most_bytes``."""
    batch: Batch = []
    size = 0
    for record in records:
        if batch and size + len(record.text) > most_bytes:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.text) + 1
        if len(batch) == most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@dataclass
class PublishSummary:
    """What became of the records so far; ``reasons`` are the first refusals, by the line of the file."""

    accepted: int = 0
    refused: int = 0
    reasons: list[tuple[int, str]] = field(default_factory=list)

    def count(self, batch: Batch, published: Published) -> None:
        """Adds the answer to a batch."""
        self.accepted += published.accepted
        self.refused += len(published.refused) + published.unlisted
        for refusal in published.refused[: REASONS_KEPT - len(self.reasons)]:
            self.reasons.append((batch[refusal.index].line, refusal.reason))


class PublishPace:
    """Spreads records evenly: ``rate`` of them a second, from the first one on."""

    def __init__(self, rate: float) -> None:
        self._rate, self._sent, self._began = rate, 0, 0.0

    def wait(self, now: float) -> float:
        """How many seconds the next batch has to wait."""
        if not self._sent:
            self._began = now
        return max(0.0, self._began + self._sent / self._rate - now)

    def sent(self, count: int) -> None:
        """Notes that so many more were sent."""
        self._sent += count


class FeedPublisher:
    """Sends batches to one feed. A batch that got no answer is sent again: by their ids, records are stored once.

    A server that is busy is asked again when it said, one that is away or has no room ever less often, for ``patience``
    seconds in a row. ``waiting`` is told why, and how long it goes on.
    """

    def __init__(
        self,
        server: RemoteServer,
        feed: str,
        *,
        joined: bool,
        patience: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        waiting: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        self._server, self._path, self._joined = server, f"/feeds/{feed}", joined
        self._patience, self._sleep, self._waiting = patience, sleep, waiting

    def send(self, batch: Batch) -> Published:
        """The server's answer to the batch, as soon as there is one."""
        wait, waited = _FIRST_WAIT, 0.0
        while True:
            try:
                return self._send(batch)
            except TocsinError as error:
                busy = isinstance(error, BusyError)
                if waited >= self._patience or not (busy or error.status in _PASSING):
                    raise
                pause = error.retry_after if isinstance(error, BusyError) else wait
                self._waiting(str(error), f"trying again for another {self._patience - waited:.0f} s")
            self._sleep(pause)
            waited, wait = waited + pause, wait if busy else min(2 * wait, _LONGEST_WAIT)

    def _send(self, batch: Batch) -> Published:
        texts = [record.text for record in batch]
        body = b"[" + b",".join(texts) + b"]" if self._joined else b"\n".join(texts)
        try:
            answer = self._server.post(self._path, body, "application/json" if self._joined else "application/x-ndjson")
        except RemoteError as error:
            if error.problem.refused is None:
                raise
            return Published(0, error.problem.refused, error.problem.unlisted)
        return msgspec.json.decode(answer, type=Published)
