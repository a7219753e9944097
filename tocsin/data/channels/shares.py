"""An execution in shares: its query for some of the subscriptions, with some of its relations replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tocsin.data.channels import trouble
from tocsin.data.channels.frames import register
from tocsin.data.compiler import query
from tocsin.data.compiler.generated import quote_name
from tocsin.data.compiler.rewrite import SUBSCRIPTIONS


class QueryShares:
    """Gives the results of shares of an execution.

    Args:
        views: what the relations of the statement are bound to in the whole execution.
    """

    def __init__(self, spark: SparkSession, statement: str, views: Mapping[str, str]) -> None:
        self._spark, self._statement, self._views = spark, statement, views
        self._registered: list[str] = []

    def share(self, condition: str, replaced: Mapping[str, DataFrame]) -> DataFrame:
        """The results for the subscriptions that meet a condition."""
        frames = {SUBSCRIPTIONS: self.table(SUBSCRIPTIONS).where(condition), **replaced}
        views = {**self._views, **{relation: self._view(frame) for relation, frame in frames.items()}}
        return self._spark.sql(query.bind_views(self._statement, views))

    def table(self, relation: str) -> DataFrame:
        """A relation as it is in the whole execution."""
        return self._spark.table(self._views[relation])

    def close(self) -> None:
        """Lets go of the shares that were made."""
        for view in self._registered:
            self._spark.catalog.dropTempView(view)
        self._registered.clear()

    def _view(self, frame: DataFrame) -> str:
        view = register(frame)
        self._registered.append(view)
        return view


def fault(frame: DataFrame) -> str:
    """Why a frame cannot be computed because of its data, if so; raises what is not the data's fault."""
    try:
        # Computes everything, and keeps nothing.
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:
        if not trouble.is_of_data(error):
            raise
        return trouble.sentence(error)
    return ""


def digest(frame: DataFrame) -> Column:
    """What tells a record from all others: the same for the same values, and nobody can make another with it."""
    record = f"struct({', '.join(map(quote_name, frame.columns))})"
    return F.expr(f"sha2(to_json({record}, {query.JSON}), 256)")


def leave_out(frame: DataFrame, digests: Iterable[str]) -> DataFrame:
    """A relation but for these records."""
    return frame.where(~digest(frame).isin(sorted(digests)))
