"""An execution taken apart: its query for some of the subscriptions, on some of the records.

And what follows from the verdict then: the results of all who work, which records somebody does without, and for how
long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels.blame import Verdict
from tocsin.data.channels.letters import Letter
from tocsin.data.channels.shares import QueryShares, digest, fault
from tocsin.data.channels.stains import MOST as MOST_STAINS
from tocsin.data.channels.stains import Record, Stain
from tocsin.data.compiler.check import Compiled
from tocsin.data.compiler.rewrite import BE, fresh
from tocsin.data.ids import IdArray
from tocsin.data.lake import frames

# Records are looked at one by one up to so many. If more are new they are taken as a whole; more of a dataset that is
# read as a whole are nobody's fault, since it would mean something else without them all.
MOST_RECORDS: Final = 100_000
_DIGEST: Final = "__digest"


@dataclass(frozen=True)
class _Relation:
    """What is new in a dataset, or all of it with the ``digests``: its records begin at position ``first``.

    Without ``rows``, they are too many, and count as one.
    """

    dataset: str
    first: int
    rows: pa.Table | None
    digests: list[str] | None = None

    @property
    def count(self) -> int:
        return 1 if self.rows is None else int(self.rows.num_rows)


class Apart:
    """Gives the results of parts of an execution, and tells which parts fail.

    Its records are those that are new, and those of datasets that are read as a whole.

    Args:
        views: what the relations of the statement are bound to in the whole execution.
        ids: the subscriptions, ascending; a part is told by their positions.
    """

    def __init__(self, spark: SparkSession, compiled: Compiled, views: Mapping[str, str], ids: IdArray) -> None:
        self._spark, self.ids = spark, ids
        self._shares = QueryShares(spark, compiled.statement, views)
        self._relations: dict[str, _Relation] = {}
        self.news = sorted(compiled.fresh)
        """The datasets of which something is new."""
        self.records = 0
        for dataset in sorted(compiled.fresh):
            self._add(fresh(dataset), _Relation(dataset, self.records, self._collect(fresh(dataset))))
        for dataset in sorted(compiled.whole):
            if (rows := self._collect(dataset, marked=True)) is not None:
                digests = rows[_DIGEST].to_pylist()
                self._add(dataset, _Relation(dataset, self.records, rows.drop_columns(_DIGEST), digests))
        self.reason = ""
        """Why the last part that failed did."""
        self.reasons: dict[int, str] = {}
        """Why subscriptions fail, of those that were tried alone: nobody is told of another's values."""

    def works(self, subscriptions: range, records: Sequence[int]) -> bool:
        """Whether the execution works for these subscriptions on these records; raises what is not the data's fault."""
        if not subscriptions:
            return True
        first, last = self.ids[subscriptions[0]], self.ids[subscriptions[-1]]
        try:
            reason = fault(self.frame(f"{BE} BETWEEN {first} AND {last}", records))
        finally:
            self.close()
        if reason:
            self.reason = reason
            if len(subscriptions) == 1:
                self.reasons[int(first)] = reason
        return not reason

    def frame(self, condition: str, records: Sequence[int]) -> DataFrame:
        """The results for the subscriptions that meet a condition, on some of the records."""
        if len(records) == self.records:
            return self._shares.share(condition, {})
        kept = np.array(records, np.int64)
        return self._shares.share(condition, {relation: self._rows(relation, kept) for relation in self._relations})

    def subscriptions(self, positions: Iterable[int]) -> set[int]:
        """The subscriptions at these positions."""
        return {int(self.ids[position]) for position in positions}

    def record(self, position: int) -> tuple[str, str]:
        """The dataset of a record, and the record as JSON."""
        found = self._at(position)
        if found.rows is None:
            return found.dataset, "all that was new, which was too much to look at one by one"
        return found.dataset, json.dumps(found.rows.slice(position - found.first, 1).to_pylist()[0], default=str)

    def lasting(self, positions: frozenset[int]) -> frozenset[Record]:
        """Those of some records that will be there at the next execution, too."""
        found = [(self._at(position), position) for position in positions]
        return frozenset((one.dataset, one.digests[at - one.first]) for one, at in found if one.digests is not None)

    def close(self) -> None:
        """Lets go of the parts that were made."""
        self._shares.close()

    def _add(self, name: str, relation: _Relation) -> None:
        self._relations[name] = relation
        self.records += relation.count

    def _at(self, position: int) -> _Relation:
        return next(one for one in self._relations.values() if one.first <= position < one.first + one.count)

    def _collect(self, relation: str, marked: bool = False) -> pa.Table | None:
        """The rows of a relation, with their digests if wanted; None if they are too many."""
        rows = self._shares.table(relation)
        if rows.limit(MOST_RECORDS + 1).count() > MOST_RECORDS:
            return None
        return (rows.withColumn(_DIGEST, digest(rows)) if marked else rows).toArrow()

    def _rows(self, name: str, kept: IdArray) -> DataFrame:
        """Those of the kept records that are of a relation."""
        relation, rows = self._relations[name], self._shares.table(name)
        first, count = relation.first, relation.count
        places = kept[(kept >= first) & (kept < first + count)] - first
        if len(places) == count:
            return rows
        if relation.rows is None or not len(places):
            return rows.where("false")
        return frames.local(self._spark, relation.rows.take(pa.array(places))).coalesce(1)


def letters_of(apart: Apart, verdict: Verdict) -> list[Letter]:
    """The records that somebody does without."""
    told: list[tuple[int, int | None]] = [(position, None) for position in sorted(verdict.poison)]
    told += [
        (record, int(apart.ids[place])) for place, records in verdict.without.items() for record in sorted(records)
    ]
    letters = [Letter(*apart.record(position), be, apart.reason) for position, be in told]
    everything = [(dataset, be) for be in sorted(apart.subscriptions(verdict.unclear)) for dataset in apart.news]
    return letters + [Letter(dataset, "all that was new", be, apart.reasons.get(be, "")) for dataset, be in everything]


def shares_of(apart: Apart, verdict: Verdict) -> list[DataFrame]:
    """The results of all that works, in shares."""

    def remaining(left_out: frozenset[int]) -> list[int]:
        return [position for position in range(apart.records) if position not in left_out]

    blamed = ", ".join(str(be) for be in sorted(apart.subscriptions(verdict.set_apart)))
    shares = []
    if len(verdict.set_apart) < len(apart.ids):
        # With nobody to serve, it might still fail with a record that nobody is served with.
        shares.append(apart.frame(f"{BE} NOT IN ({blamed})" if blamed else "true", remaining(verdict.poison)))
    for left_out in sorted(set(verdict.without.values()), key=sorted):
        some = ", ".join(str(apart.ids[place]) for place, records in verdict.without.items() if records == left_out)
        shares.append(apart.frame(f"{BE} IN ({some})", remaining(left_out)))
    return shares


def stains_of(apart: Apart, verdict: Verdict) -> list[Stain]:
    """The records that are to be left out from the beginning the next time, and for whom."""
    if verdict.poison:
        return [Stain(apart.lasting(verdict.poison), last=int(apart.ids[-1]))]
    groups: dict[frozenset[Record], list[int]] = {}
    for place, records in sorted(verdict.without.items()):
        groups.setdefault(apart.lasting(records), []).append(int(apart.ids[place]))
    return [Stain(records, tuple(bes)) for records, bes in groups.items()][:MOST_STAINS]
