"""The files that nodes write and the head commits, as they are told of."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.data.lake.unclaimed import is_name
from tocsin.errors import InvalidError


class FileKind(StrEnum):
    """What is in a file."""

    RECORDS = "records"
    DEAD_LETTERS = "dead-letters"
    RESULTS = "results"


class ChannelMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That a channel was matched with the rows of a batch.

    Args:
        tag: of what it was matched with (:class:`tocsin.data.nodes.channels.NodeChannel`).
        age: how many seconds ago that was begun, when the batch is offered.
    """

    channel: str
    tag: str
    age: float


class NodeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that is written and durable. Its rows bear no version: whichever commit takes it gives it one.

    Args:
        path: relative to the lake; empty where a channel was matched and has found nothing.
        size: in bytes.
        match: of which channel it has results.
    """

    kind: FileKind
    path: str
    size: int
    rows: int
    match: ChannelMatch | None = None


def encode(file: NodeFile) -> str:
    """A file as the cores pass it on."""
    return msgspec.json.encode(file).decode()


def decode(text: str) -> NodeFile:
    """The same back. Raises InvalidError if it is nonsense."""
    try:
        return msgspec.json.decode(text, type=NodeFile)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidError(f"a file is offered that cannot be understood ({error}): {text[:100]!r}") from None


def name_in(folder: str, file: NodeFile) -> str:
    """A file's name. Raises InvalidError unless it is a node's file, right in a folder of the lake."""
    name = file.path.rpartition("/")[2]
    if not is_name(name) or file.path != f"{folder}/{name}":
        raise InvalidError(f"a file is offered as {file.path!r}, which is not one that a node writes for this feed")
    return name
