"""A feed log that another data cluster takes over, at any step of an append: what was accepted is there once."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.data.feeds.test_log import records as records_of_slice
from tocsin.data.feeds.ends import EndsFile
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.writer import SliceWriter
from tocsin.data.fence import Fence
from tocsin.errors import StorageError, SupersededError

TakeOver = Callable[..., FeedLog]


@pytest.fixture
def take_over(feed: Path, tmp_path: Path) -> Iterator[TakeOver]:
    """Opens the log as the data cluster of that term does, whoever else has it open."""
    with ExitStack() as stack:

        def take_over(term: int, segment_bytes: int = 1 << 20) -> FeedLog:
            fence = Fence(tmp_path, term)
            fence.put_up()
            return stack.enter_context(FeedLog(feed, 2, segment_bytes, fence=fence))

        yield take_over


def test_one_that_was_superseded_accepts_nothing_and_harms_nothing(feed: Path, take_over: TakeOver) -> None:
    first = take_over(1)
    first.append({0: [b"1"], 1: [b"2"]})
    second = take_over(2)
    second.append({0: [b"3"]})
    for _ in range(2):
        with pytest.raises(SupersededError, match=r"its term is 2, that of this one 1\): nothing was accepted"):
            first.append({0: [b"zombie"], 1: [b"zombie"]})
    second.append({0: [b"4"], 1: [b"5"]})
    assert sorted(records(feed)) == [b"1", b"2", b"3", b"4", b"5"]
    assert sorted(_read_again(feed, take_over)) == [b"1", b"2", b"3", b"4", b"5"]


def test_an_earlier_one_cannot_open_it_any_more(take_over: TakeOver) -> None:
    take_over(2)
    with pytest.raises(SupersededError):
        take_over(1)


STEPS: list[tuple[type, str]] = [
    (SliceWriter, "stage"),
    (SliceWriter, "sync"),
    (Fence, "check"),
    (EndsFile, "write"),
    (SliceWriter, "accept"),
]


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20], ids=["each in a segment of its own", "all in one segment"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("time", [1, 2])
@pytest.mark.parametrize(("part", "step"), STEPS, ids=[step for _, step in STEPS])
def test_whichever_step_of_an_append_it_is_taken_over_at_what_is_accepted_is_there_once(
    feed: Path,
    take_over: TakeOver,
    monkeypatch: pytest.MonkeyPatch,
    part: type,
    step: str,
    time: int,
    after: bool,
    segment_bytes: int,
) -> None:
    first = take_over(1, segment_bytes)
    first.append({0: [b"a"], 1: [b"b"]})
    accepted = [b"a", b"b"]
    takes = getattr(part, step)
    calls = 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == time and after:
            takes(*arguments)
        if calls == time:
            take_over(2, segment_bytes).append({0: [b"c"], 1: [b"d"]})
            accepted.extend([b"c", b"d"])
        return None if calls == time and after else takes(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(part, step, interrupted)
        with suppress(SupersededError, StorageError):
            first.append({0: [b"x"], 1: [b"y"]})
            accepted += [b"x", b"y"]
        with suppress(SupersededError, StorageError):
            first.append({0: [b"z"]})
            accepted.append(b"z")
    _check(records(feed), accepted)
    _check(_read_again(feed, take_over), accepted)


def _check(found: list[bytes], accepted: list[bytes]) -> None:
    """What was accepted is there once. What was refused may be there, as after a crash, but not twice."""
    assert set(accepted) <= set(found)
    assert len(found) == len(set(found))


def records(feed: Path) -> list[bytes]:
    return records_of_slice(feed, 0) + records_of_slice(feed, 1)


def _read_again(feed: Path, take_over: TakeOver) -> list[bytes]:
    take_over(9).close()
    return records(feed)


def test_while_the_fence_cannot_be_looked_at_nothing_is_accepted(
    feed: Path, take_over: TakeOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = take_over(1)
    before = log.append({0: [b"1"], 1: [b"2"]})
    with monkeypatch.context() as patched:
        patched.setattr(Fence, "check", unreadable)
        for _ in range(2):
            with pytest.raises(StorageError, match=r"Input/output error.*nothing was accepted"):
                log.append({0: [b"lost"], 1: [b"lost"]})
    assert log.ends() == before
    log.append({0: [b"3"], 1: [b"4"]})
    assert records(feed) == [b"1", b"3", b"2", b"4"]


def test_what_another_has_gone_on_from_is_not_taken_back_later_either(
    feed: Path, take_over: TakeOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = take_over(1)
    with monkeypatch.context() as patched:
        patched.setattr(Fence, "check", unreadable)
        with pytest.raises(StorageError):
            first.append({0: [b"synced"]})
    take_over(2).append({0: [b"next"]})
    with pytest.raises(SupersededError):
        first.append({0: [b"zombie"]})
    assert records(feed) == [b"synced", b"next"]


def unreadable(_: Fence) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))
