"""The log of a table as its writer sees it: a commit comes right after the last one the writer knows, or not at all.

An entry of the log is never replaced, so that of two writers one is refused. A writer with a term puts it into the log
when it opens the table: from then on every earlier one, wherever it was held up, finds its next number taken.
"""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable

from tocsin.data.disk import FULL
from tocsin.data.lake.checkpoints import read_markers
from tocsin.data.lake.entries import FENCE, LOG, TERM_MARKER, TableChange, encode_entry, entry_name, is_kept
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.opening import open_table
from tocsin.errors import SupersededError


class CommitLog:
    """One writer's end of a table's log.

    What can go wrong: another has committed since (:class:`SupersededError`; this writer must end), the storage refuses
    (OSError; nothing was committed, and the same may be tried again), or it does not answer before the process is to
    end (OutcomeUnknownError).
    """

    def __init__(self, folder: Folder) -> None:
        self._folder, self._log = folder, folder.below(LOG)
        self._term = folder.fence.term if folder.fence is not None else 0
        self.number = -1
        """The last commit."""
        self.markers: dict[str, int] = {}
        """How far the commits got."""

    def open(self, schema: pa.Schema) -> DeltaTable:
        """The table as of its last whole commit, after which no earlier writer can commit any more."""
        while True:
            delta = open_table(self._folder, schema)
            self.number, self.markers = delta.version(), read_markers(self._log)
            if self._term in (0, self._seen_term):
                return delta
            self._check_term()
            try:
                fence = self.put(TableChange(FENCE))
                if self._log.read(entry_name(self.number)) == fence:
                    return delta
                # A store that looks first and puts then has let somebody else in: what is there counts.
            except SupersededError:
                # Somebody with an earlier term was quicker: what it committed counts.
                continue
            except OSError as error:
                # The first commit is as good as a fence, only later.
                if error.errno not in FULL:
                    raise
                return delta

    def put(self, change: TableChange) -> bytes:
        """Commits a change, which is durable when this returns; its entry."""
        self._check_term()
        content = encode_entry(change, self._folder.syncs, self._term)
        try:
            self._folder.commit(self.number + 1, content, [file.name for file in change.added])
        except FileExistsError as error:
            raise self._superseded_error(str(error)) from None
        self.number += 1
        self.markers.update({**change.markers, **({TERM_MARKER: self._term} if self._term else {})})
        return content

    def is_last(self) -> bool:
        """Whether nobody else has committed since; not to be asked while something is put."""
        return self._log.find(entry_name(self.number + 1)) is None and is_kept(self._log, self.number)

    @property
    def _seen_term(self) -> int:
        return self.markers.get(TERM_MARKER, 0)

    def _check_term(self) -> None:
        if self._seen_term > self._term:
            raise self._superseded_error(
                f"it is written under term {self._seen_term}, that of this one is {self._term}"
            )

    def _superseded_error(self, why: str) -> SupersededError:
        table = "/".join(self._folder.url.split("/")[-2:])
        return SupersededError(
            f"another data cluster has taken over the table {table}: {why}; nothing was committed, and this one must "
            "end"
        )
