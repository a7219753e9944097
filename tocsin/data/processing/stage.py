"""What Spark's workers do with the rows of a micro-batch: the function takes them, a thousand at a time.

Rows go in and come out as ingestion has them: with their slice and position, which the function does not see. What it
gave bears the place of the last record it was given; a row without anything tells how far each slice has come, as a
function may drop all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from tocsin.data.feeds.parsing import DAMAGE, POSITION, RAW, ROW, SLICE
from tocsin.data.processing.bisection import Patience, TriedPart, try_parts
from tocsin.data.processing.contract import check_keys
from tocsin.data.processing.process import function_process
from tocsin.errors import InvalidError

CUT: Final = 1000
_UNAVAILABLE: Final = re.compile(r"FunctionUnavailableError: (.*)")

Batches = Iterator[pa.RecordBatch]
Letter = tuple[int, int, str | None]


class FunctionUnavailableError(Exception):
    """A worker cannot start the function. No record is to blame: whoever waits for it says so, and tries again."""


@dataclass(frozen=True)
class Processing:
    """How the records of a feed are processed.

    Args:
        function: as ``module:function``.
        columns: of the dataset.
        key: the dataset's primary key, which the function must give.
        seconds: that it may take for a thousand records.
        memory: bytes that its process may have.
        keeps_keys: whether it may give only keys that a record has which it was given.
    """

    function: str
    columns: pa.Schema
    key: str | None
    seconds: float
    memory: int
    keeps_keys: bool = False

    def collect(self, parsed: DataFrame, floor: Sequence[int], buried: Mapping[Letter, int]) -> pa.Table:
        """The rows that the function makes of ``parsed``. Raises InvalidError where the function cannot be had.

        Args:
            floor: positions up to which each slice is in the dataset, and not to be processed again.
            buried: how many of such lines are in the dead letters already, and are not to be processed either.
        """
        with unavailable_told():
            return parsed.mapInArrow(self.process(floor, buried), parsed.schema).toArrow()

    def process(self, floor: Sequence[int], buried: Mapping[Letter, int]) -> Callable[[Batches], Batches]:
        """What a worker does with the rows of its task."""
        return partial(self._process, np.array(floor, np.int64), dict(buried))

    def _process(self, floor: np.ndarray, buried: dict[Letter, int], batches: Batches) -> Batches:
        patience, dead = Patience(self.seconds), Counter(buried)
        for batch in batches:
            new = batch.filter(pa.array(batch.column(POSITION).to_numpy() > floor[batch.column(SLICE).to_numpy()]))
            if not new.num_rows:
                continue
            good = _is_good(new)
            yield new.filter(pc.invert(good))
            records = _without(new.filter(good), dead)
            for first in range(0, records.num_rows, CUT):
                yield from self._take(records.slice(first, CUT), patience)
            yield _places(new)

    def _take(self, records: pa.RecordBatch, patience: Patience) -> Batches:
        rows = self._rows(records)
        process = function_process(self.function, self.memory)

        def run(first: int, last: int, seconds: float) -> pa.RecordBatch:
            taken = rows.slice(first, last - first)
            try:
                given = process.run(taken, self.key, seconds)
            except InvalidError as error:
                raise FunctionUnavailableError(str(error)) from None
            if self.keeps_keys and self.key is not None:
                check_keys(given.column(self.key), taken.column(self.key), self.key)
            return given

        for part in try_parts(0, records.num_rows, run, patience):
            yield self._outcome(records, part) if part.given is not None else self._letters(records, part)

    def _rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The records, without their places."""
        fields = records.column(ROW).flatten()[: len(self.columns)]
        columns = [field.cast(type_) for field, type_ in zip(fields, self.columns.types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.columns)

    def _outcome(self, records: pa.RecordBatch, part: TriedPart[pa.RecordBatch]) -> pa.RecordBatch:
        assert part.given is not None
        type_, rows = records.schema.field(ROW).type, part.given.num_rows
        wanted = [type_.field(index) for index in range(type_.num_fields)]
        columns = [column.cast(field.type) for column, field in zip(part.given.columns, wanted, strict=False)]
        row = pa.StructArray.from_arrays([*columns, pa.nulls(rows, wanted[-1].type)], fields=wanted)
        place = {name: pa.repeat(records.column(name)[part.last - 1], rows) for name in (SLICE, POSITION)}
        return _batch(records.schema, rows, {**place, ROW: row})

    def _letters(self, records: pa.RecordBatch, part: TriedPart[pa.RecordBatch]) -> pa.RecordBatch:
        dead, rows = records.slice(part.first, part.last - part.first), part.last - part.first
        reason = pa.repeat(pa.scalar(f"{self.function}: {part.fault}"), rows)
        kept = {name: dead.column(name) for name in (SLICE, POSITION, RAW)}
        return _batch(records.schema, rows, {**kept, DAMAGE: reason})


@contextmanager
def unavailable_told() -> Iterator[None]:
    """What Spark says of a function that cannot be had, as InvalidError."""
    try:
        yield
    except Exception as error:
        if (found := _UNAVAILABLE.search(str(error))) is None:
            raise
        raise InvalidError(found[1]) from None


def _is_good(rows: pa.RecordBatch) -> pa.Array:
    """Which rows a line was read for without fault."""
    corrupt = rows.column(ROW).flatten()[-1]
    return pc.and_(pc.and_(pc.is_null(rows.column(DAMAGE)), pc.is_valid(rows.column(ROW))), pc.is_null(corrupt))


def _without(records: pa.RecordBatch, dead: Counter[Letter]) -> pa.RecordBatch:
    """The records but for the dead ones, each of which is taken off the count."""
    if not dead:
        return records
    alive = []
    for letter in zip(*(records.column(name).to_pylist() for name in (SLICE, POSITION, RAW)), strict=True):
        alive.append(dead[letter] <= 0)
        dead[letter] -= 1
    return records.filter(pa.array(alive, pa.bool_()))


def _places(rows: pa.RecordBatch) -> pa.RecordBatch:
    """How far each slice has come, in rows that have nothing else."""
    reached = pa.table({name: rows.column(name) for name in (SLICE, POSITION)})
    reached = reached.group_by(SLICE).aggregate([(POSITION, "max")]).combine_chunks()
    places = {SLICE: reached[SLICE].combine_chunks(), POSITION: reached[f"{POSITION}_max"].combine_chunks()}
    return _batch(rows.schema, reached.num_rows, places)


def _batch(schema: pa.Schema, rows: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Rows with these columns; all others are null."""
    arrays = [columns[field.name] if field.name in columns else pa.nulls(rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays([a.cast(f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema)
