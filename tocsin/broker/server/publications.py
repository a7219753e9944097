"""Publications on their way to the data cluster: one batch of a feed at a time, so that they arrive in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import httpx
import msgspec

from tocsin.broker.actions import PublishBatch
from tocsin.broker.events import BatchFailed, BatchPublished
from tocsin.log import get_logger
from tocsin.model import names
from tocsin.model.messages import SHARES, Failure, PublishedShares

log = get_logger(__name__)

_SHARES: Final = {"Content-Type": SHARES}
Outcome = BatchPublished | BatchFailed


class PublicationSender:
    """Sends batches, and answers every one.

    What can go wrong: the data cluster refuses records (told one by one), is busy (told with the time to wait), does
    not answer or is not there (``unavailable``: whether the records were taken is not known).
    """

    def __init__(self, client: httpx.AsyncClient, tell: Callable[[Outcome], None]) -> None:
        self._client, self._tell = client, tell
        self._feeds: dict[str, deque[PublishBatch]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def publish(self, batch: PublishBatch) -> None:
        """Sends a batch after those of the same feed before it."""
        if batch.feed in self._feeds:
            self._feeds[batch.feed].append(batch)
            return
        self._feeds[batch.feed] = deque([batch])
        task = asyncio.create_task(self._send(batch.feed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Gives up what is on its way."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, feed: str) -> None:
        waiting = self._feeds[feed]
        while waiting:
            batch = waiting.popleft()
            self._tell(await self._outcome(batch))
        del self._feeds[feed]

    async def _outcome(self, batch: PublishBatch) -> Outcome:
        if fault := names.fault(batch.feed):
            return BatchFailed(batch.batch, "not-found", f"there is no such feed: {batch.feed[:40]!r} {fault}")
        body = msgspec.json.encode(batch.shares)
        try:
            answer = await self._client.post(f"/feeds/{quote(batch.feed)}", content=body, headers=_SHARES)
            return _read(batch, answer)
        except httpx.HTTPError as error:
            log.warning("batch not published", feed=batch.feed, reason=str(error) or type(error).__name__)
            return BatchFailed(batch.batch, "unavailable", "the data cluster did not answer; publish this again later")
        except Exception:
            log.exception("fault while publishing a batch", feed=batch.feed)
            return BatchFailed(batch.batch, "internal", "a fault in the broker; publish this again later")


def _read(batch: PublishBatch, answer: httpx.Response) -> Outcome:
    try:
        if answer.is_success:
            published = msgspec.json.decode(answer.content, type=PublishedShares)
            return BatchPublished(batch.batch, published.refused, published.denied, published.unlisted)
        problem = msgspec.json.decode(answer.content, type=Failure).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = f"the data cluster answered with status {answer.status_code}, and not as one does"
        return BatchFailed(batch.batch, "unavailable", message)
    if answer.status_code in (401, 403):
        # Not the subscriber's fault, and nothing it can put right.
        log.error("the data cluster does not let this broker publish", feed=batch.feed, reason=problem.message)
        return BatchFailed(batch.batch, "unavailable", "the broker may not publish; tell whoever runs it")
    return BatchFailed(batch.batch, problem.code, problem.message, problem.retry_after)
