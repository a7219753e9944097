"""The way into a feed: what is accepted is on disk, groups share an fsync, and nobody spoils it for the others."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.waiting import until_async
from tocsin.data.feeds.admission import Admission
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import Chunk, durable_ends, read
from tocsin.errors import BusyError, InvalidError, StorageError, SupersededError, UnavailableError
from tocsin.model.messages import Published
from tocsin.schema.definitions import Column, Dataset, DatasetKind, Feed
from tocsin.schema.types import parse_type
from tocsin.settings import FeedsSettings

DATASET = Dataset(
    "Reports",
    DatasetKind.APPEND,
    (Column("id", parse_type("STRING")), Column("severity", parse_type("INT"))),
    "id",
)
FEED = Feed("reports", "Reports", "id", 4)
JSON = "application/json"


class Log(FeedLog):
    """A log that counts its appends, and can be kept from ending one or made to refuse."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, FEED.slices, 1 << 20)
        self.appends: list[int] = []
        self.may_write = threading.Event()
        self.may_write.set()
        self.refusal: Exception | None = None

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> list[int]:
        self.may_write.wait(30)
        self.appends.append(sum(map(len, batches.values())))
        if self.refusal is not None:
            raise self.refusal
        return super().append(batches)

    def ids(self) -> list[str]:
        """The ids of all that is durable, as a reader finds them."""
        found = []
        for index, end in enumerate(durable_ends(self.path)):
            for entry in read(self.path, index, 0, end):
                assert isinstance(entry, Chunk)
                found += [json.loads(record)["id"] for record in entry.records]
        return sorted(found)


@pytest.fixture
async def log(feed: Path) -> AsyncIterator[Log]:
    log = Log(feed)
    with log:
        yield log


@pytest.fixture
async def admission(log: Log) -> Admission:
    return made(log)


def made(log: Log, *, backlog: int = 0, **settings: float) -> Admission:
    return Admission(FEED, DATASET, log, msgspec.convert(settings, FeedsSettings), lambda: backlog)


def record(name: str, **values: object) -> bytes:
    return json.dumps({"id": name, **values}).encode()


def publishing(admission: Admission, *names: str) -> list[asyncio.Task[Published]]:
    return [asyncio.create_task(admission.publish(record(name), JSON)) for name in names]


async def test_what_was_accepted_is_on_disk_in_the_slice_of_its_id(admission: Admission, log: Log) -> None:
    body = json.dumps([{"id": f"r{n}", "severity": n} for n in range(50)]).encode()
    assert await admission.publish(body, JSON) == Published(50)
    assert log.ids() == sorted(f"r{n}" for n in range(50))
    assert all(end > 0 for end in durable_ends(log.path))
    await admission.publish(b"\n".join(record(f"r{n}") for n in range(50)), "application/x-ndjson")
    # The same id goes to the same slice.
    assert all(len(set(ids)) * 2 == len(ids) for ids in by_slice(log))


def by_slice(log: Log) -> list[list[str]]:
    slices = []
    for index, end in enumerate(durable_ends(log.path)):
        entries = list(read(log.path, index, 0, end))
        slices.append([json.loads(r)["id"] for entry in entries if isinstance(entry, Chunk) for r in entry.records])
    return slices


async def test_refused_records_are_told_of_and_the_others_accepted(admission: Admission, log: Log) -> None:
    body = b'[{"id": "a"}, {"id": "b", "severity": "high"}, {"severity": 1}, {"id": "c", "severity": 2}]'
    published = await admission.publish(body, JSON)
    assert published.accepted == 2
    assert [refusal.index for refusal in published.refused] == [1, 2]
    assert log.ids() == ["a", "c"]


async def test_a_request_without_an_acceptable_record_writes_nothing(admission: Admission, log: Log) -> None:
    published = await admission.publish(b'{"id": 7}', JSON)
    assert (published.accepted, len(published.refused), log.appends) == (0, 1, [])
    with pytest.raises(InvalidError, match="empty"):
        await admission.publish(b"", JSON)


async def test_publications_that_come_together_share_an_fsync(log: Log) -> None:
    admission = made(log, group_commit_ms=50)
    await asyncio.gather(*publishing(admission, *(f"r{n}" for n in range(100))))
    assert log.appends == [100]


async def test_what_comes_while_a_group_is_written_makes_the_next_group(admission: Admission, log: Log) -> None:
    log.may_write.clear()
    first = publishing(admission, "a")
    await until_writing(admission)
    second = publishing(admission, "b", "c", "d")
    await asyncio.sleep(0)
    log.may_write.set()
    await asyncio.gather(*first, *second)
    assert log.appends == [1, 3]


async def until_writing(admission: Admission) -> None:
    await until_async(lambda: admission._writing.locked())


async def test_a_large_request_is_decoded_aside_and_accepted_as_well(admission: Admission, log: Log) -> None:
    body = b"\n".join(record(f"r{n:06}", severity=n) for n in range(10_000))
    assert await admission.publish(body, "application/x-ndjson") == Published(10_000)
    assert log.ids() == [f"r{n:06}" for n in range(10_000)]


async def test_over_its_bound_a_feed_asks_to_come_again_later(log: Log) -> None:
    admission = made(log, backlog=2000, max_backlog_bytes=1999, retry_after_seconds=3)
    with pytest.raises(BusyError, match=r"2,000 bytes waiting .* bound of 1,999") as busy:
        await admission.publish(record("a"), JSON)
    assert busy.value.retry_after == 3
    assert await made(log, backlog=2000, max_backlog_bytes=2000).publish(record("a"), JSON) == Published(1)


async def test_what_the_disk_has_not_taken_yet_counts_as_waiting_whoever_has_gone_away(log: Log) -> None:
    admission = made(log, backlog=1000, max_backlog_bytes=1024)
    log.may_write.clear()
    first, second = publishing(admission, "a" * 10, "b")
    await until_writing(admission)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    with pytest.raises(BusyError, match=r"has 1,031 bytes waiting"):
        await admission.publish(record("c"), JSON)
    log.may_write.set()
    assert await second == Published(1)
    assert await admission.publish(record("c"), JSON) == Published(1)


async def test_what_was_refused_waits_no_more(log: Log) -> None:
    admission = made(log, backlog=1000, max_backlog_bytes=1024)
    log.refusal = StorageError("the disk is full")
    with pytest.raises(StorageError):
        await admission.publish(record("a" * 20), JSON)
    assert (await admission.publish(b'{"id": 7, "why": "this is long enough"}', JSON)).accepted == 0
    with pytest.raises(InvalidError):
        await admission.publish(b" " * 100, JSON)
    log.refusal = None
    assert await admission.publish(record("b"), JSON) == Published(1)


@pytest.mark.parametrize("refusal", [StorageError("the disk is full"), OSError(5, "Input/output error")])
async def test_a_refusal_of_the_disk_is_told_to_all_of_the_group_and_to_nobody_else(
    log: Log, refusal: Exception
) -> None:
    admission = made(log, group_commit_ms=50)
    log.refusal = refusal
    answers = await asyncio.gather(*publishing(admission, "a", "b", "c"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StorageError] * 3
    assert (log.appends, log.ids()) == ([3], [])
    log.refusal = None
    assert await admission.publish(record("d"), JSON) == Published(1)
    assert log.ids() == ["d"]


async def test_a_publisher_that_goes_away_does_not_take_the_others_with_it(admission: Admission, log: Log) -> None:
    log.may_write.clear()
    first, second, third = publishing(admission, "a", "b", "c")
    await until_writing(admission)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    log.may_write.set()
    assert [await second, await third] == [Published(1)] * 2
    assert first.cancelled()
    # It never had an answer, so its record may be there.
    assert set(log.ids()) >= {"b", "c"}


async def test_a_group_of_which_everybody_went_away_does_not_hold_up_the_next(admission: Admission, log: Log) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    log.refusal = StorageError("the disk is full")
    gone = publishing(admission, "a", "b")
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    await admission.close()
    log.refusal = None
    admission.unseal()
    assert await admission.publish(record("c"), JSON) == Published(1)
    gc.collect()
    assert complaints == []


async def test_closing_waits_for_what_was_taken_and_takes_no_more(admission: Admission, log: Log) -> None:
    log.may_write.clear()
    taken = publishing(admission, "a", "b")
    await until_writing(admission)
    closing = asyncio.create_task(admission.close())
    await asyncio.sleep(0)
    assert not closing.done()
    with pytest.raises(UnavailableError, match="being closed"):
        await admission.publish(record("late"), JSON)
    log.may_write.set()
    await closing
    assert await asyncio.gather(*taken) == [Published(1)] * 2
    with pytest.raises(UnavailableError, match="feed reports is being closed"):
        await admission.publish(record("c"), JSON)
    assert log.ids() == ["a", "b"]


async def test_nothing_is_written_once_the_feed_is_sealed_and_nobody_is_told_otherwise(
    admission: Admission, log: Log
) -> None:
    log.may_write.clear()
    first = publishing(admission, "a")
    await until_writing(admission)
    second = publishing(admission, "b")
    await asyncio.sleep(0)
    sealing = asyncio.create_task(asyncio.to_thread(admission.seal))
    await asyncio.sleep(0)
    log.may_write.set()
    await sealing
    ids = log.ids()
    answers = await asyncio.gather(*first, *second, return_exceptions=True)
    accepted = [name for name, answer in zip("ab", answers, strict=True) if isinstance(answer, Published)]
    assert accepted == ids == log.ids()
    assert all(isinstance(answer, Published | UnavailableError) for answer in answers)
    admission.unseal()
    assert await admission.publish(record("c"), JSON) == Published(1)


async def test_a_full_disk_is_told_of_only_until_there_is_room(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    admission, room = made(log, retry_after_seconds=0.01), False
    monkeypatch.setattr(FeedLog, "has_room", lambda self: room)
    log.refusal = StorageError("the disk is full")
    with pytest.raises(StorageError):
        await admission.publish(record("a"), JSON)
    assert admission.refusal == "the disk is full"
    room = True
    # Nobody publishes meanwhile.
    await until_async(lambda: admission.refusal == "")


def test_a_disk_is_found_to_have_room_by_giving_it_something(feed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FeedLog(feed, 2, 1 << 20) as log:
        assert log.has_room()
        with monkeypatch.context() as full:
            full.setattr(os, "fdatasync", _full)
            assert not log.has_room()
        assert log.has_room()
    assert not (feed / "probe").exists()


def _full(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_whoever_publishes_to_one_that_was_superseded_is_told_so_and_not_of_a_disk(
    admission: Admission, log: Log
) -> None:
    log.refusal = SupersededError("another data cluster has taken over")
    answers = await asyncio.gather(*publishing(admission, "a", "b"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [SupersededError] * 2
    assert (admission.refusal, log.ids()) == ("", [])
