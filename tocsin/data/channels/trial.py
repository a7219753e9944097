"""Subscriptions tried by themselves before they are executed with all others, where some have failed lately.

One query tells whether they work, and then they are executed with the others. Otherwise they are taken apart, and the
others are not: whoever subscribes with ever new parameters that fail makes nobody else's execution fail.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data.channels.apart import Apart
from tocsin.data.channels.blame import Verdict, try_out
from tocsin.data.channels.frames import only, register, without
from tocsin.data.channels.shares import QueryShares, fault
from tocsin.data.compiler.check import Compiled
from tocsin.data.compiler.rewrite import SUBSCRIPTIONS
from tocsin.data.ids import IdArray


class SeparateTrial:
    """The trial of some subscriptions of an execution.

    Args:
        views: what the relations of the statement are bound to in the whole execution.
        ids: those who are on trial, ascending.
    """

    def __init__(self, spark: SparkSession, compiled: Compiled, views: Mapping[str, str], ids: IdArray) -> None:
        self._spark, self._compiled, self._ids = spark, compiled, ids
        everybody, bes = spark.table(views[SUBSCRIPTIONS]), pa.array(ids)
        self._own = {**views, SUBSCRIPTIONS: register(only(spark, everybody, bes))}
        self.others = {**views, SUBSCRIPTIONS: register(without(spark, everybody, bes))}
        """What the relations are bound to for all who are not on trial."""

    def works(self) -> bool:
        """Whether they can be executed; raises what is not the data's fault."""
        shares = QueryShares(self._spark, self._compiled.statement, self._own)
        try:
            return not fault(shares.share("true", {}))
        finally:
            shares.close()

    def judge(self, most: int) -> tuple[Apart, Verdict]:
        """Who of them is to blame, found with so many queries; the parts must be closed."""
        apart = Apart(self._spark, self._compiled, self._own, self._ids)
        return apart, try_out(len(self._ids), apart.records, apart.works, most)

    def close(self) -> None:
        """Lets go of the views that were made."""
        for views in (self._own, self.others):
            self._spark.catalog.dropTempView(views[SUBSCRIPTIONS])
