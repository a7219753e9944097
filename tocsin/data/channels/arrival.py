"""Records on their way into a dataset, with which channels are matched before they are stored."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

import pyarrow as pa


class OvertakenError(Exception):
    """What was matched ahead does not count; an ordinary execution finds it."""


@dataclass(frozen=True, eq=False)
class Arrival:
    """The ``rows`` that will be version ``version`` of a dataset, if they are stored.

    An execution on them may compute what it finds at once. It may commit that only after the rows are stored, as
    exactly that version: so nobody is told of a record that is lost, and a crash in between costs one ordinary
    execution.
    """

    dataset: str
    version: int
    rows: pa.Table
    _stored: Future[bool] = field(default_factory=Future, repr=False)

    def end(self, stored: bool) -> None:
        """Says once what became of the rows."""
        self._stored.set_result(stored)

    def wait(self) -> None:
        """Returns when the rows are stored; raises OvertakenError if they are not."""
        if not self._stored.result():
            raise OvertakenError(f"the records for version {self.version} of {self.dataset} were not stored")
