"""What a node may say: judged before a head's core hears it, so that who talks nonsense hurts nobody else."""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from tocsin.errors import ForbiddenError, InvalidError
from tocsin.slices.messages import LONG_REASON, SHORT_REASON, Commit, Declined, Epoch, FromNode, Hello, NodeReport

MOST_FILES: Final = 4096
"""Files of one batch."""
FILE_CHARACTERS: Final = 1024
"""The description of a file."""
MOST_CAPACITY: Final = 1_000_000.0
LARGEST: Final = 2**63 - 1


def judge(node: str, message: FromNode, slices: int) -> None:
    """Raises InvalidError for what no node of a feed with so many slices can mean, ForbiddenError for another's name.

    Whether it is also true is for the core and the store to find out.
    """
    match message:
        case Hello(name, capacity, holding):
            if name != node:
                raise ForbiddenError(f"this connection is that of node {node}, and hello says {name[:128]!r}")
            _require_number("capacity", capacity, MOST_CAPACITY)
            _require_epochs(holding, slices)
        case NodeReport(cpu, memory, rows, batch_seconds, loads, problem, left_out):
            for what, value in (("cpu", cpu), ("memory", memory), ("rows", rows), ("batch_seconds", batch_seconds)):
                _require_number(what, value, LARGEST)
            _require_few("slices of a report", loads, slices)
            for load in loads:
                _require_number("rate", load.rate, LARGEST)
                _require_number("backlog", load.backlog, LARGEST)
            _require_short(problem, LONG_REASON)
            _require_few("slices that are left out", left_out, slices)
            for slice_, reason in left_out.items():
                _require_number("slice", slice_, slices - 1)
                _require_short(reason, SHORT_REASON)
        case Commit(batch, parts, files):
            _require_number("batch", batch, LARGEST)
            _require_few("parts of a commit", parts, slices)
            for part in parts:
                _require_number("slice", part.slice, slices - 1)
                for what, value in (("begin", part.begin), ("end", part.end), ("records", part.records)):
                    _require_number(what, value, LARGEST)
            _require_few("files of a commit", files, MOST_FILES)
            if any(len(file) > FILE_CHARACTERS for file in files):
                raise InvalidError(f"the description of a file has at most {FILE_CHARACTERS:,} characters")
        case Declined(declined, reason):
            _require_epochs(declined, slices)
            _require_short(reason, LONG_REASON)


def _require_epochs(epochs: dict[int, Epoch], slices: int) -> None:
    _require_few("slices", epochs, slices)
    for slice_ in epochs:
        _require_number("slice", slice_, slices - 1)


def _require_few(what: str, things: Sized, most: int) -> None:
    if len(things) > most:
        raise InvalidError(f"{len(things):,} {what} are too many: there may be {most:,}")


def _require_short(reason: str, most: int) -> None:
    if len(reason) > most:
        raise InvalidError(f"a reason has at most {most:,} characters")


def _require_number(what: str, value: float, most: float) -> None:
    if not 0 <= value <= most:
        raise InvalidError(f"{what} must be a number from 0 to {most:,.0f}")
