"""At the head: what nodes offer is checked, and committed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.data.channels.matches import NodeMatch
from tocsin.data.feeds.addresses import DirectoryLog
from tocsin.data.feeds.batch import may_end_at
from tocsin.data.feeds.deadletters import COLUMNS, count_beyond, without
from tocsin.data.feeds.ingest import marker, positions
from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.feeds.parsing import DEAD_LETTERS
from tocsin.data.lake.table import File, Table
from tocsin.data.lake.unclaimed import OutdatedError
from tocsin.data.nodes import files
from tocsin.data.nodes.files import FileKind, NodeFile
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.errors import InvalidError, StorageError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.arrow import record_schema
from tocsin.slices.actions import StoreCommits
from tocsin.slices.messages import Commit, SlicePart

log = get_logger(__name__)

Matched = Callable[[Table, int, Sequence[Mapping[str, NodeMatch]]], None]
_CHANNEL: Final = re.compile(r"\w{1,255}")
# What the footer of a file may have, in bytes and in things: a node's file has one row group for some thousand rows.
_FOOTER: Final = {"thrift_string_size_limit": 1 << 24, "thrift_container_size_limit": 100_000}


class CommitStore:
    """The dataset and the dead letters of one shared feed, as the head's core has commits stored.

    Its calls block. ``store`` is to be called by one thread at a time, ``check`` by any.

    What can go wrong: the storage refuses, or what was offered is not there any more (StorageError: surely nothing was
    committed to the dataset, and the same records may be offered again); the process dies (all of it is committed, or
    nothing of it; dead letters may be there before, and are then not stored again).

    Args:
        matched: told after each commit what channels have found in it, for each of its batches that has records.
    """

    def __init__(
        self,
        shared: SharedFeed,
        table: Table,
        dead_letters: Table,
        feed_log: PublicationLog,
        matched: Matched = lambda _table, _version, _batches: None,
    ) -> None:
        self._shared, self._log, self._matched = shared, feed_log, matched
        self._tables = {FileKind.RECORDS: table, FileKind.DEAD_LETTERS: dead_letters}
        self._schemas = {FileKind.RECORDS: record_schema(shared.dataset.columns), FileKind.DEAD_LETTERS: DEAD_LETTERS}

    def markers(self) -> list[int]:
        """Up to which position the dataset has each slice; what a head's core begins with."""
        return positions(self._tables[FileKind.RECORDS], self._shared.feed)

    def ends(self) -> list[int]:
        """Up to where the log has each slice by now, whoever writes it."""
        return self._log.newest_ends()

    def check(self, commit: Commit) -> None:
        """Raises InvalidError, with what is wrong, if a node could not have offered this in good faith.

        To be called before the core is told of it: it must hurt nobody but who offers it. Refused are parts that are
        out of bounds or end beyond what the log has, files that are not where a node's files are, are not there, or are
        not what they are said to be. That the parts begin at the markers is for the core to see.

        Raises OutdatedError for what could have been stored some time ago, and cannot be any more, with files that are
        part of the dataset already, too old, or gone; and UnavailableError if the storage does not answer: the same may
        be offered again.
        """
        self._check_parts(commit.parts)
        self._check_ends(commit.parts)
        offered = [files.decode(text) for text in commit.files]
        paths = [file.path for file in offered if file.path]
        if len(set(paths)) < len(paths):
            raise InvalidError("a file is offered twice in one commit")
        matches = {file.match for file in offered if file.match is not None}
        if len({match.channel for match in matches}) < len(matches):
            raise InvalidError("results of a channel are offered that were matched with different things")
        for file in offered:
            if file.kind is FileKind.RESULTS or file.match is not None:
                self._check_results(file)
        for kind, table in self._tables.items():
            self._check_files(table, [file for file in offered if file.kind is kind and file.match is None])

    def store(self, wanted: StoreCommits) -> None:
        """Makes one commit of the dataset, with all files and the markers that they reach; dead letters go first.

        On disk when this returns. Raises StorageError, and only that, if nothing of it is committed and never will be.
        """
        now, table = time.monotonic(), self._tables[FileKind.RECORDS]
        try:
            self._check_markers(wanted)
            batches = [[files.decode(text) for text in commit.files] for commit in wanted.commits]
            entries = [(file.kind, self._file_entry(file)) for batch in batches for file in batch if file.match is None]
        except (InvalidError, UnavailableError) as error:
            raise StorageError(f"feed {self._shared.feed.name}: {error}") from error
        self._bury(wanted.commits)
        records = [file for kind, file in entries if kind is FileKind.RECORDS]
        version = table.adopt_unstamped(records, _markers(wanted.markers), _writers(batches, wanted.nodes)).version
        with_records = [batch for batch in batches if any(file.kind is FileKind.RECORDS for file in batch)]
        self._matched(table, version, [_matches(batch, now) for batch in with_records])

    def _check_parts(self, parts: Sequence[SlicePart]) -> None:
        ends = self._log.ends()
        if any(0 <= part.slice < len(ends) and part.end > ends[part.slice] for part in parts):
            ends = self._log.newest_ends()
        for part in parts:
            if not 0 <= part.slice < len(ends):
                raise InvalidError(f"feed {self._shared.feed.name} has no slice {part.slice}")
            if not 0 <= part.begin < part.end or part.records < 0:
                raise InvalidError(
                    f"slice {part.slice} is offered from {part.begin} to {part.end} with {part.records} records"
                )
            if part.end > ends[part.slice]:
                raise InvalidError(
                    f"slice {part.slice} is offered up to {part.end}, and its log goes up to {ends[part.slice]} only"
                )

    def _check_ends(self, parts: Sequence[SlicePart]) -> None:
        """An end inside of a frame would have that slice's next reader take the rest of the frame for damage."""
        if not isinstance(place := self._log.address(), DirectoryLog):
            return
        ends = self._log.ends()
        for part in parts:
            try:
                fits = may_end_at(Path(place.path), part.slice, part.begin, part.end, ends[part.slice])
            except StorageError as error:
                raise UnavailableError(str(error)) from error
            if not fits:
                raise InvalidError(f"slice {part.slice} is offered up to {part.end}, where no record of its log ends")

    def _check_files(self, table: Table, offered: Sequence[NodeFile]) -> None:
        try:
            entries = [self._file_entry(file) for file in offered]
            if table is self._tables[FileKind.DEAD_LETTERS]:
                # They are committed first: an earlier attempt may have got as far as that.
                known = set(table.snapshot.paths())
                entries = [entry for entry in entries if entry.path not in known]
            table.check_offered(entries)
            for file in offered:
                self._check_content(table, file)
        except OSError as error:
            raise UnavailableError(f"{table.folder.url} cannot be looked into ({error}); it is tried again") from error

    def _check_content(self, table: Table, file: NodeFile) -> None:
        name, (filesystem, place) = self._name(file), table.folder.arrow
        try:
            with pq.ParquetFile(f"{place}/{name}", filesystem=filesystem, **_FOOTER) as found:
                rows, schema = found.metadata.num_rows, found.schema_arrow
        except (OSError, pa.ArrowException) as error:
            # It is the file's fault unless the storage is away, which is nobody's.
            if table.folder.find(name) is None:
                raise OutdatedError(f"{file.path} is not there any more") from error
            raise InvalidError(f"{file.path} cannot be read: {error}") from error
        if rows != file.rows or not schema.equals(self._schemas[file.kind], check_metadata=False):
            raise InvalidError(f"{file.path} has not the {file.rows} rows and the columns that it should have")

    def _check_results(self, file: NodeFile) -> None:
        """Only the form: a channel may be dropped at any time, and whoever reads its files sees what is in them."""
        match = file.match
        is_of_channel = match is not None and file.kind is FileKind.RESULTS and _CHANNEL.fullmatch(match.channel)
        if match is None or not is_of_channel or not 0 <= match.age < inf:
            raise InvalidError(f"results are offered that are of no channel: {file.path!r}")
        if file.path or file.rows or file.size:
            files.name_in(self._shared.folder_of(file), file)

    def _check_markers(self, wanted: StoreCommits) -> None:
        """The core has seen to it; a mistake here would lose records or repeat them, so it is looked at again."""
        reached = self.markers()
        for part in (part for commit in wanted.commits for part in commit.parts):
            self._check_parts([part])
            if part.begin != reached[part.slice]:
                raise StorageError(
                    f"feed {self._shared.feed.name}: slice {part.slice} is offered from {part.begin}, and the dataset "
                    f"has it up to {reached[part.slice]}"
                )
            reached[part.slice] = part.end
        if any(reached[index] != position for index, position in wanted.markers.items()):
            raise StorageError(f"feed {self._shared.feed.name}: markers are offered that the parts do not reach")

    def _bury(self, commits: Sequence[Commit]) -> None:
        """Keeps what cannot be stored, once: an earlier attempt may have got as far as this."""
        letters = self._tables[FileKind.DEAD_LETTERS]
        offered, markers, again = list[File](), dict[int, int](), False
        for commit in commits:
            found = [file for text in commit.files if (file := files.decode(text)).kind is FileKind.DEAD_LETTERS]
            if not found:
                continue
            offered += map(self._file_entry, found)
            for part in commit.parts:
                before = letters.marker(marker(part.slice))
                again |= before > part.begin
                markers[part.slice] = max(markers.get(part.slice, 0), before, part.end)
        if again:
            self._bury_new(offered, markers)
        elif offered:
            letters.adopt_unstamped(offered, _markers(markers))
        if offered:
            log.error("dead letters", feed=self._shared.feed.name, records=sum(file.rows for file in offered))

    def _bury_new(self, offered: Sequence[File], markers: dict[int, int]) -> None:
        """The same where some of it is there already: row by row, as a function may fail on other records this time."""
        letters = self._tables[FileKind.DEAD_LETTERS]
        try:
            contents = (pa.BufferReader(letters.folder.read(file.name)) for file in offered)
            rows = pa.concat_tables(pq.read_table(content, schema=DEAD_LETTERS) for content in contents)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"feed {self._shared.feed.name}: dead letters cannot be read ({error})") from error
        rows = without(rows, count_beyond(letters.read(columns=COLUMNS), self.markers()))
        if rows.num_rows:
            letters.append(rows, _markers(markers))

    def _file_entry(self, file: NodeFile) -> File:
        return File(self._tables[file.kind].folder.path(self._name(file)), 0, 0, file.size, file.rows)

    def _name(self, file: NodeFile) -> str:
        return files.name_in(self._shared.folder_of(file), file)


def _matches(batch: Sequence[NodeFile], now: float) -> dict[str, NodeMatch]:
    """What a batch that came at ``now`` or before has of channels."""
    found: dict[str, NodeMatch] = {}
    for file in batch:
        if (match := file.match) is None:
            continue
        known = found.get(match.channel, NodeMatch(match.channel, match.tag, now - match.age, ()))
        names = (file.path.rpartition("/")[2],) if file.path else ()
        found[match.channel] = replace(known, files=known.files + names)
    return found


def _writers(batches: Sequence[Sequence[NodeFile]], nodes: Sequence[str]) -> dict[str, str]:
    """Whose files they are, by their names."""
    named = zip(batches, nodes, strict=False)
    return {file.path.rpartition("/")[2]: node for batch, node in named for file in batch if file.match is None}


def _markers(positions_: dict[int, int]) -> dict[str, int]:
    return {marker(index): position for index, position in positions_.items()}
