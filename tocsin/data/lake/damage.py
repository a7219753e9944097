"""Which file of a table it is that cannot be read, and who wrote it: looked for once somebody has failed on it.

A file whose end is whole may have anything before it. Nobody reads all of a node's file before it counts, as its rows
do not pass through whoever commits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.data.lake.entries import LOG, File, find_entries, find_writer
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.unclaimed import is_name
from tocsin.errors import StorageError


@contextmanager
def damage_named(folder: Folder, files: Iterable[File]) -> Iterator[None]:
    """A failure to read these files is told as StorageError that names the first damaged one of a node, if one is."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        # What the system refuses has a number; what makes no sense has none.
        makes_no_sense = getattr(error, "errno", None) is None
        if makes_no_sense and (damaged := _find_damaged(folder, files)):
            raise StorageError(
                f"the table at {folder.url} cannot be read: its file {damaged}, written by {_writer(folder, damaged)}, "
                f"is damaged ({_first_line(error)}): restore it from a backup, and find out what is wrong there"
            ) from error
        raise


def _find_damaged(folder: Folder, files: Iterable[File]) -> str:
    for name in (file.name for file in files if is_name(file.name)):
        try:
            content = folder.read(name)
        except OSError:
            # The storage is away, or the file: that says so by itself.
            return ""
        try:
            pq.read_table(pa.BufferReader(content))
        except (OSError, pa.ArrowException):
            return name
    return ""


def _writer(folder: Folder, name: str) -> str:
    log = folder.below(LOG)
    try:
        node = find_writer(log, sorted(find_entries(log.files()).values(), reverse=True), name)
    except OSError:
        node = ""
    return f"node {node}" if node else "a node that its log does not name any more"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
