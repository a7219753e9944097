"""One execution: a channel run for all its subscriptions on what is there now, its results committed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels import trouble
from tocsin.data.channels.apart import Apart
from tocsin.data.channels.blame import UnclearError, Verdict, judge
from tocsin.data.channels.frames import ExecutionRound, SubscriptionFrames
from tocsin.data.channels.letters import DeadLetters, Letter
from tocsin.data.channels.shares import QueryShares, leave_out
from tocsin.data.channels.stains import MOST as MOST_STAINS
from tocsin.data.channels.stains import Record, Stain, Stains, concerns_all, rest
from tocsin.data.channels.strikes import Strikes
from tocsin.data.compiler import query
from tocsin.data.compiler.check import Compiled
from tocsin.data.compiler.rewrite import BE, SUBSCRIPTIONS, fresh
from tocsin.data.lake.table import Table
from tocsin.data.results import ChannelResults, sizes
from tocsin.data.store import SetAside
from tocsin.data.subscriptions import Segments, SubscriptionRegistry
from tocsin.data.subscriptions.ids import IdArray, ascending, without
from tocsin.log import get_logger
from tocsin.settings import ChannelsSettings

log = get_logger(__name__)

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Execution:
    """What an execution did: its number, the BE subscriptions with results and the bytes of each.

    ``failing`` are those that it could not serve, or not with everything, each with the reason.
    """

    channel: str
    number: int
    bes: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    seconds: float
    failing: Mapping[int, str] = field(default_factory=dict)


class Executor:
    """Runs channels. An execution that fails has changed nothing and can be tried again.

    One that fails because of its data is, at the second time, taken apart: subscriptions and records that cannot be
    executed are set aside, and all others get what is theirs in the same one commit.

    Different channels may run at the same time, one channel only once at a time.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Mapping[str, Table],
        subscriptions: SubscriptionRegistry,
        set_aside: SetAside,
        letters: DeadLetters,
        settings: ChannelsSettings,
    ) -> None:
        self._spark, self._tables, self._subscriptions = spark, tables, subscriptions
        self._set_aside, self._letters, self._settings = set_aside, letters, settings
        self._subscribed = SubscriptionFrames(spark)
        self._strikes, self._stains = Strikes(), Stains()
        self._groups: dict[str, str] = {}
        self._apart: set[str] = set()

    def news(self, compiled: Compiled, results: ChannelResults) -> list[tuple[str, int]]:
        """What the channel will ask a round for: the news of its datasets since it last ran."""
        return [(name, results.seen(name)) for name in sorted(compiled.fresh)]

    def has_work(self, compiled: Compiled, results: ChannelResults) -> bool:
        """Whether an execution could find anything."""
        if not self._subscriptions.count(compiled.channel.name):
            return False
        news = self.news(compiled, results)
        return not compiled.quiet or any(self._tables[name].version > since for name, since in news)

    def run(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> Execution:
        """Executes the channel on the datasets of ``moment``."""
        name = compiled.channel.name
        group = self._groups[name] = f"execution-{next(_NUMBERS)}"
        self._spark.sparkContext.setJobGroup(group, name)
        try:
            return self._run(compiled, results, moment)
        finally:
            self._groups.pop(name, None)
            self._apart.discard(name)

    def cancel(self, channel: str) -> None:
        """Ends the query of a channel's execution at hand, which then fails; may be called from any thread."""
        group = self._groups.get(channel)
        if group is not None:
            context: Any = self._spark.sparkContext._jsc
            context.sc().cancelJobGroupAndFutureJobs(group)

    def is_apart(self, channel: str) -> bool:
        """Whether a channel's execution at hand is being taken apart, which takes many queries."""
        return channel in self._apart

    def _run(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> Execution:
        started = time.monotonic()
        name = compiled.channel.name
        aside = ascending([be for be, _, _ in self._set_aside.of(name, time.time())])
        segments = self._subscriptions.segments(name)
        views = {SUBSCRIPTIONS: self._subscribed.view(name, segments, aside)}
        views |= {dataset: moment.whole(dataset) for dataset in compiled.whole}
        views |= {fresh(dataset): moment.fresh(dataset, since) for dataset, since in self.news(compiled, results)}
        versions = {dataset: moment.snapshot(dataset).version for dataset in compiled.fresh}
        failing: dict[int, str] = {}
        shares = QueryShares(self._spark, compiled.statement, views)
        try:
            found = self._found(compiled, shares, views, segments, aside)
            number, rows = results.commit(found, versions, datetime.now(UTC))
        except Exception as error:
            if not trouble.is_of_data(error) or not self._strikes.failed(name):
                raise
            self._apart.add(name)
            ids = without(segments.ids(), aside)
            log.info("taking an execution apart", channel=name, subscriptions=len(ids), reason=trouble.sentence(error))
            apart = Apart(self._spark, compiled, views, ids)
            number, rows, failing = self._rescue(apart, name, results, versions, error)
        finally:
            shares.close()
        bes, bytes_ = sizes(rows)
        self._strikes.served(name, bes, segments)
        return Execution(name, number, bes, bytes_, time.monotonic() - started, failing)

    def forget(self, channel: str) -> None:
        """Lets go of what is kept for a channel."""
        self._subscribed.drop(channel)
        self._strikes.forget(channel)
        self._stains.forget(channel)

    def _found(
        self, compiled: Compiled, shares: QueryShares, views: Mapping[str, str], segments: Segments, aside: IdArray
    ) -> DataFrame:
        """What the channel finds; where some do without records that are known to fail, in shares."""
        stains = self._stains.of(compiled.channel.name)
        if not stains:
            return self._spark.sql(query.bound(compiled.statement, views))
        whole = [] if concerns_all(stains, without(segments.ids(), aside)) else [shares.share(rest(stains), {})]
        return reduce(DataFrame.unionAll, [*whole, *(_stained(shares, compiled, stain) for stain in stains)])

    def _rescue(
        self, apart: Apart, name: str, results: ChannelResults, versions: Mapping[str, int], error: Exception
    ) -> tuple[int, pa.Table, dict[int, str]]:
        """The execution without those that are to blame for its failure; the number, the rows and who they are."""
        known = int(np.searchsorted(apart.ids, self._strikes.known(name), side="right"))
        try:
            most = self._settings.bisection_queries
            verdict = judge(len(apart.ids), apart.records, apart.works, most, known)
            failing = self._blamed(apart, name, verdict)
            self._stains.put(name, _stains(apart, verdict))
            self._letters.write(name, results.execution + 1, _letters(apart, verdict), datetime.now(UTC))
            number, rows = results.commit(_rest(apart, verdict), versions, datetime.now(UTC))
        except UnclearError as unclear:
            if unclear.found:
                # There are too many to be found at once; without these, the next attempt finds others.
                self._blamed(apart, name, Verdict(hopeless=set(unclear.found)))
                self._strikes.progressed(name)
            log.warning("not all could be told apart", channel=name, reason=str(unclear), found=len(unclear.found))
            raise error from None
        finally:
            apart.close()
        log.warning(
            "executed without some",
            channel=name,
            execution=number,
            subscriptions=len(failing),
            records=len(_letters(apart, verdict)),
            reason=apart.reason,
        )
        return number, rows, failing

    def _blamed(self, apart: Apart, name: str, verdict: Verdict) -> dict[int, str]:
        """Sets aside who cannot be executed; everybody who is to be told something, with what."""
        hopeless = {int(apart.ids[place]) for place in verdict.hopeless}
        struck = {int(apart.ids[place]) for place in verdict.without}
        hopeless |= self._strikes.struck(name, struck)
        seconds = self._settings.set_aside_seconds
        aside = f"the channel cannot be executed with these parameters, and is not for {seconds / 3600:g} h"
        missed = "some records are left out, as the channel cannot be executed on them with these parameters"
        reasons = {be: f"{aside}: {apart.reasons.get(be, '')}" for be in sorted(hopeless)}
        self._set_aside.put(name, reasons, time.time() + seconds)
        return reasons | {be: f"{missed}: {apart.reasons.get(be, '')}" for be in sorted(struck - hopeless)}


def _letters(apart: Apart, verdict: Verdict) -> list[Letter]:
    """The records that somebody does without."""
    kept_from = [(position, None) for position in sorted(verdict.poison)]
    told: list[tuple[int, int | None]] = [*kept_from]
    told += [
        (record, int(apart.ids[place])) for place, records in verdict.without.items() for record in sorted(records)
    ]
    return [Letter(*apart.record(position), be, apart.reason) for position, be in told]


def _rest(apart: Apart, verdict: Verdict) -> DataFrame:
    """The results of all that works, as one."""

    def kept(left_out: frozenset[int]) -> list[int]:
        return [position for position in range(apart.records) if position not in left_out]

    blamed = ", ".join(str(apart.ids[place]) for place in sorted(verdict.hopeless | set(verdict.without)))
    shares = []
    if len(verdict.hopeless | set(verdict.without)) < len(apart.ids):
        # With nobody to serve, it might still fail with a record that nobody is served with.
        shares.append(apart.frame(f"{BE} NOT IN ({blamed})" if blamed else "true", kept(verdict.poison)))
    for left_out in sorted(set(verdict.without.values()), key=sorted):
        some = ", ".join(str(apart.ids[place]) for place, records in verdict.without.items() if records == left_out)
        shares.append(apart.frame(f"{BE} IN ({some})", kept(left_out)))
    return reduce(DataFrame.unionAll, shares)


def _stains(apart: Apart, verdict: Verdict) -> list[Stain]:
    """The records that are to be left out from the beginning the next time, and for whom."""
    if verdict.poison:
        return [Stain(apart.lasting(verdict.poison), last=int(apart.ids[-1]))]
    groups: dict[frozenset[Record], list[int]] = {}
    for place, records in sorted(verdict.without.items()):
        groups.setdefault(apart.lasting(records), []).append(int(apart.ids[place]))
    return [Stain(records, tuple(bes)) for records, bes in groups.items()][:MOST_STAINS]


def _stained(shares: QueryShares, compiled: Compiled, stain: Stain) -> DataFrame:
    """The share of those who do without some records."""
    left_out = {dataset: stain.of(dataset) for dataset in compiled.whole}
    replaced = {dataset: leave_out(shares.table(dataset), some) for dataset, some in left_out.items() if some}
    return shares.share(stain.condition, replaced)
