"""The application's publications: calls that wait until the core has an answer for every record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tocsin.client.core import actions
from tocsin.client.core.events import Event, Publish
from tocsin.errors import InvalidError
from tocsin.model.messages import Published

Record = Mapping[str, Any] | bytes | str


class Publisher:
    """Calls to publish.

    What can go wrong: a record cannot be written as JSON (nothing is sent); so much waits for its answer that the core
    takes no more (the call waits for room); a call is cancelled (its records may be stored).
    """

    def __init__(self, tell: Callable[[Event], None], refs: Iterator[int]) -> None:
        self._tell, self._refs = tell, refs
        self._calls: dict[int, asyncio.Future[Published | None]] = {}
        self._waiting: list[asyncio.Future[None]] = []

    async def publish(self, feed: str, records: Iterable[Record]) -> Published:
        """What became of the records, when it is known of all."""
        texts = _texts(records)
        while True:
            ref, answer = next(self._refs), asyncio.get_running_loop().create_future()
            self._calls[ref] = answer
            self._tell(Publish(ref, feed, texts))
            if published := await answer:
                assert isinstance(published, Published)
                return published
            await self._room()

    def published(self, answer: actions.Published) -> None:
        """All records of a call are answered."""
        self._settle(answer.ref, Published(answer.accepted, answer.refused))
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            if not call.done():
                call.set_result(None)

    def refused(self, ref: int) -> bool:
        """There was no room for a call; False if it is none of these."""
        known = ref in self._calls
        self._settle(ref, None)
        return known

    def end(self, error: Exception) -> None:
        """No answers come any more."""
        waiting: list[asyncio.Future[Any]] = [*self._calls.values(), *self._waiting]
        for call in waiting:
            if not call.done():
                call.set_exception(error)

    async def _room(self) -> None:
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(room)
        await room

    def _settle(self, ref: int, answer: Published | None) -> None:
        call = self._calls.pop(ref, None)
        if call and not call.done():
            call.set_result(answer)


def _texts(records: Iterable[Record]) -> list[bytes]:
    if isinstance(records, Mapping | bytes | str):
        raise InvalidError("publish takes a list of records; write [record] for a single one")
    return [_text(index, record) for index, record in enumerate(records)]


def _text(index: int, record: Record) -> bytes:
    if isinstance(record, bytes):
        return record
    if isinstance(record, str):
        return record.encode()
    try:
        return msgspec.json.encode(record)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise InvalidError(f"record {index} cannot be written as JSON: {error}") from None
