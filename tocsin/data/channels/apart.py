"""An execution taken apart: its query for some of the subscriptions, on some of the new records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels import query, trouble
from tocsin.data.channels.check import Compiled
from tocsin.data.channels.frames import register
from tocsin.data.lake import frames
from tocsin.data.sql.rewrite import BE, SUBSCRIPTIONS, fresh
from tocsin.data.subscriptions.ids import IdArray

# What is new is looked at record by record up to so many, and otherwise as a whole.
MOST_RECORDS: Final = 100_000


class Apart:
    """Gives the results of parts of an execution, and tells which parts fail.

    Args:
        views: what the relations of the statement are bound to in the whole execution.
        ids: the subscriptions, ascending; a part is told by their positions.
    """

    def __init__(self, spark: SparkSession, compiled: Compiled, views: Mapping[str, str], ids: IdArray) -> None:
        self._spark, self._compiled, self._views, self.ids = spark, compiled, views, ids
        self._registered: list[str] = []
        self._news = {dataset: self._collected(dataset) for dataset in sorted(compiled.fresh)}
        counts = [self._count(dataset) for dataset in self._news]
        self._firsts = dict(zip(self._news, itertools.accumulate([0, *counts]), strict=False))
        self.records = sum(counts)
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
            # Computes everything, and keeps nothing.
            self.frame(f"{BE} BETWEEN {first} AND {last}", records).write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not trouble.is_of_data(error):
                raise
            self.reason = trouble.sentence(error)
            if len(subscriptions) == 1:
                self.reasons[int(first)] = self.reason
            return False
        finally:
            self.close()
        return True

    def frame(self, condition: str, records: Sequence[int]) -> DataFrame:
        """The results for the subscriptions that meet a condition, on some of the records."""
        views = {**self._views, SUBSCRIPTIONS: self._view(self._table(SUBSCRIPTIONS).where(condition))}
        if len(records) < self.records:
            kept = np.array(records, np.int64)
            views |= {fresh(dataset): self._view(self._rows(dataset, kept)) for dataset in self._news}
        return self._spark.sql(query.bound(self._compiled.statement, views))

    def record(self, position: int) -> tuple[str, str]:
        """The dataset of a record, and the record as JSON."""
        dataset = next(name for name in reversed(self._news) if self._firsts[name] <= position)
        rows = self._news[dataset]
        if rows is None:
            return dataset, "all that was new, which was too much to look at one by one"
        return dataset, json.dumps(rows.slice(position - self._firsts[dataset], 1).to_pylist()[0], default=str)

    def close(self) -> None:
        """Lets go of the parts that were made."""
        for view in self._registered:
            self._spark.catalog.dropTempView(view)
        self._registered.clear()

    def _collected(self, dataset: str) -> pa.Table | None:
        news = self._table(fresh(dataset))
        return None if news.limit(MOST_RECORDS + 1).count() > MOST_RECORDS else news.toArrow()

    def _count(self, dataset: str) -> int:
        rows = self._news[dataset]
        return 1 if rows is None else int(rows.num_rows)

    def _rows(self, dataset: str, kept: IdArray) -> DataFrame:
        """Those of the kept records that are of a dataset."""
        first, rows = self._firsts[dataset], self._news[dataset]
        places = kept[(kept >= first) & (kept < first + self._count(dataset))] - first
        if len(places) == self._count(dataset):
            return self._table(fresh(dataset))
        if rows is None or not len(places):
            return self._table(fresh(dataset)).where("false")
        return frames.local(self._spark, rows.take(pa.array(places))).coalesce(1)

    def _table(self, relation: str) -> DataFrame:
        return self._spark.table(self._views[relation])

    def _view(self, frame: DataFrame) -> str:
        view = register(frame)
        self._registered.append(view)
        return view
