"""A head whose disk refuses: nothing is said to be stored before it is, and nothing is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import msgspec
import pytest

from tests.waiting import until_async
from tocsin import writer as writing
from tocsin.errors import StorageError
from tocsin.overlay.messages import Routed
from tocsin.overlay.server.store import ReplayStore
from tocsin.overlay.server.writer import LogWriter


class Disk:
    """Keeps batches, unless it is full."""

    def __init__(self) -> None:
        self.full, self.refusals = False, 0
        self.kept: list[list[int]] = []
        self.forgotten: list[tuple[list[str], int]] = []

    def append(self, publications: Sequence[Routed], forgotten: Sequence[str], floor: int) -> None:
        if self.full:
            self.refusals += 1
            raise StorageError("the disk is full")
        if forgotten:
            self.forgotten.append((list(forgotten), floor))
        if publications:
            self.kept.append([each.offset for each in publications])


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(writing, "LONGEST_WAIT", 0.002)


def publication(offset: int) -> Routed:
    return Routed("head", offset, "ann", offset, {"high": 1.0})


async def test_while_the_disk_refuses_nothing_is_said_and_then_all_of_it_in_order() -> None:
    disk, said = Disk(), list[int]()
    writer = LogWriter(cast(ReplayStore, disk), 100, 10**6, said.append)
    running = asyncio.create_task(writer.run())
    disk.full = True
    writer.add(publication(1))
    await until_async(lambda: disk.refusals > 3)
    writer.add(publication(2))
    writer.add(publication(3))
    assert (writer.refused, said) == (True, [])
    disk.full = False
    await until_async(lambda: said == [1, 3])
    assert (writer.refused, disk.kept) == (False, [[1], [2, 3]])
    writer.end()
    await running


async def test_publishers_are_not_read_while_too_many_wait() -> None:
    disk = Disk()
    writer = LogWriter(cast(ReplayStore, disk), 3, 10**6, lambda _: None)
    disk.full = True
    running = asyncio.create_task(writer.run())
    writer.add(publication(1))
    await until_async(lambda: disk.refusals)
    writer.add(publication(2))
    await writer.room()
    writer.add(publication(3))
    waiting = asyncio.create_task(writer.room())
    await until_async(lambda: disk.refusals > 10)
    assert not waiting.done()
    disk.full = False
    await waiting
    writer.end()
    await running
    assert disk.kept == [[1], [2, 3]]


async def test_a_head_that_stops_stores_what_waits_and_does_not_wait_for_a_disk_that_refuses() -> None:
    disk, said = Disk(), list[int]()
    writer = LogWriter(cast(ReplayStore, disk), 100, 10**6, said.append)
    writer.add(publication(1))
    writer.end()
    await writer.run()
    assert (disk.kept, said) == ([[1]], [1])

    disk.full = True
    writer = LogWriter(cast(ReplayStore, disk), 100, 10**6, said.append)
    running = asyncio.create_task(writer.run())
    writer.add(publication(2))
    await until_async(lambda: disk.refusals)
    writer.end()
    await running
    assert (disk.kept, said) == ([[1]], [1])


async def test_what_is_being_written_counts_and_so_do_bytes() -> None:
    disk = Disk()
    size = len(msgspec.json.encode(publication(1)))
    writer = LogWriter(cast(ReplayStore, disk), 100, 3 * size, lambda _: None)
    disk.full = True
    running = asyncio.create_task(writer.run())
    writer.add(publication(1))
    await until_async(lambda: disk.refusals)
    writer.add(publication(2))
    await writer.room()
    writer.add(publication(3))
    # However many wait for room, and are let in at once: whoever comes first may fill it.
    waiting = [asyncio.create_task(_add_when_there_is_room(writer, offset)) for offset in range(4, 10)]
    await until_async(lambda: disk.refusals > 10)
    assert not any(each.done() for each in waiting)
    disk.full = False
    await asyncio.gather(*waiting)
    writer.end()
    await running
    assert [offset for batch in disk.kept for offset in batch] == list(range(1, 10))
    assert max(map(len, disk.kept)) <= 3


async def _add_when_there_is_room(writer: LogWriter, offset: int) -> None:
    await writer.room()
    writer.add(publication(offset))


async def test_publishers_are_forgotten_also_when_there_is_nothing_to_store() -> None:
    disk, said = Disk(), list[int]()
    writer = LogWriter(cast(ReplayStore, disk), 100, 10**6, said.append)
    running = asyncio.create_task(writer.run())
    writer.forget(["ann"], 7)
    await until_async(lambda: disk.forgotten)
    writer.add(publication(8))
    writer.forget(["bob"], 9)
    writer.end()
    await running
    assert (disk.forgotten, said) == ([(["ann"], 7), (["bob"], 9)], [8])
