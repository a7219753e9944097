"""What no node can mean is refused before the head's core hears it; what one may mean is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tocsin.errors import ForbiddenError, InvalidError
from tocsin.slices.judgement import FILE_CHARACTERS, LARGEST, MOST_CAPACITY, MOST_FILES, judge
from tocsin.slices.messages import (
    LONG_REASON,
    Commit,
    Declined,
    Epoch,
    FromNode,
    Hello,
    Leave,
    NodeReport,
    SliceLoad,
    SlicePart,
)

SLICES = 4
EPOCH = Epoch(1, 1)
ALL = dict.fromkeys(range(SLICES), EPOCH)
HELLO = Hello("n", MOST_CAPACITY, ALL)
LOADS = [SliceLoad(number, LARGEST, LARGEST) for number in range(SLICES)]
REPORT = NodeReport(0.0, 1.0, 2.0, 3.0, LOADS)
PART = SlicePart(SLICES - 1, EPOCH, 0, LARGEST, LARGEST)
COMMIT = Commit(LARGEST, [PART] * SLICES, ["f" * FILE_CHARACTERS] * MOST_FILES)
DECLINED = Declined(ALL, "r" * LONG_REASON)


@pytest.mark.parametrize(
    "message", [HELLO, REPORT, COMMIT, DECLINED, Leave()], ids=lambda message: type(message).__name__
)
def test_all_that_a_node_may_say_is_heard(message: FromNode) -> None:
    judge("n", message, SLICES)


NONSENSE: list[tuple[FromNode, str]] = [
    *((replace(HELLO, capacity=each), "capacity must be") for each in (-1.0, float("nan"), float("inf"))),
    (replace(HELLO, holding={**ALL, SLICES: EPOCH}), "5 slices are too many: there may be 4"),
    (replace(HELLO, holding={-1: EPOCH}), "slice must be a number from 0 to 3"),
    (replace(HELLO, holding={SLICES: EPOCH}), "slice must be a number from 0 to 3"),
    *((replace(REPORT, **{what: -1.0}), f"{what} must be") for what in ("cpu", "memory", "rows", "batch_seconds")),
    (replace(REPORT, cpu=float("nan")), "cpu must be"),
    (replace(REPORT, slices=[*LOADS, LOADS[0]]), "5 slices of a report are too many"),
    (replace(REPORT, slices=[SliceLoad(0, -1)]), "rate must be"),
    (replace(REPORT, slices=[SliceLoad(0, 0, LARGEST + 1)]), "backlog must be"),
    (replace(COMMIT, batch=-1), "batch must be"),
    (replace(COMMIT, parts=[PART] * (SLICES + 1)), "5 parts of a commit are too many"),
    (replace(COMMIT, parts=[replace(PART, slice=SLICES)]), "slice must be a number from 0 to 3"),
    *(
        (replace(COMMIT, parts=[replace(PART, **{what: -1})]), f"{what} must be")
        for what in ("begin", "end", "records")
    ),
    (replace(COMMIT, parts=[replace(PART, end=LARGEST + 1)]), "end must be"),
    (replace(COMMIT, files=["f"] * (MOST_FILES + 1)), "files of a commit are too many"),
    (replace(COMMIT, files=["f" * (FILE_CHARACTERS + 1)]), "the description of a file has at most"),
    (replace(DECLINED, slices={SLICES: EPOCH}), "slice must be a number from 0 to 3"),
    (replace(DECLINED, reason="r" * (LONG_REASON + 1)), "a reason has at most"),
]


@pytest.mark.parametrize(
    ("message", "reason"), NONSENSE, ids=[f"{n} {reason}" for n, (_, reason) in enumerate(NONSENSE)]
)
def test_what_no_node_can_mean_is_refused_with_the_reason(message: FromNode, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        judge("n", message, SLICES)


def test_nobody_says_hello_for_another() -> None:
    with pytest.raises(ForbiddenError, match=r"^this connection is that of node n, and hello says 'other'$"):
        judge("n", replace(HELLO, node="other"), SLICES)
