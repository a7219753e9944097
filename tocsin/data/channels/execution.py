"""One execution: a channel run for all its subscriptions on what is there now, its results committed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels import trouble
from tocsin.data.channels.apart import Apart, letters_of, shares_of, stains_of
from tocsin.data.channels.arrival import Arrival, OvertakenError
from tocsin.data.channels.blame import UnclearError, Verdict, judge
from tocsin.data.channels.frames import ExecutionRound, SubscriptionFrames
from tocsin.data.channels.letters import DeadLetters
from tocsin.data.channels.noderesults import NodeResults
from tocsin.data.channels.shares import QueryShares, leave_out
from tocsin.data.channels.stains import MOST as MOST_STAINS
from tocsin.data.channels.stains import Stain, Stains, concerns_all, rest
from tocsin.data.channels.strikes import Strikes
from tocsin.data.channels.trial import SeparateTrial
from tocsin.data.compiler import query
from tocsin.data.compiler.check import Compiled
from tocsin.data.compiler.rewrite import SUBSCRIPTIONS, fresh
from tocsin.data.ids import NONE, IdArray, ascending, common, without
from tocsin.data.lake.table import Table
from tocsin.data.results import ChannelResults, sizes
from tocsin.data.store import SetAside
from tocsin.data.subscriptions import Segments, SubscriptionRegistry
from tocsin.log import get_logger
from tocsin.settings import ChannelsSettings

log = get_logger(__name__)

_NUMBERS = itertools.count(1)
_WITHOUT_SOME: Final = "some records are left out, as the channel cannot be executed on them with these parameters"
_WITHOUT_ALL: Final = "what is new is left out this time, as the channel cannot be executed with these parameters"
_UNTRIED: Final = "what is new is left out this time, as the channel fails for others who have subscribed lately"


@dataclass(frozen=True)
class Execution:
    """What an execution did: its number, the BE subscriptions with results and the bytes of each.

    ``failing`` are those that it could not serve, or not with everything, each with the reason. ``on_arrival`` says
    that it was computed while what is new was being stored, ``by_nodes`` that it was by those that read it.
    """

    channel: str
    number: int
    bes: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    seconds: float
    failing: Mapping[int, str] = field(default_factory=dict)
    on_arrival: bool = False
    by_nodes: bool = False


@dataclass(frozen=True)
class _Task:
    """What is to be executed: a channel on these views, for its subscriptions but those set aside; when that is done it
    has seen these versions of its datasets."""

    compiled: Compiled
    results: ChannelResults
    views: Mapping[str, str]
    versions: Mapping[str, int]
    segments: Segments
    aside: IdArray

    @property
    def name(self) -> str:
        return self.compiled.channel.name

    def ids(self) -> IdArray:
        """For whom it is executed, ascending."""
        return without(self.segments.ids(), self.aside)


class Executor:
    """Runs channels. An execution that fails has changed nothing and can be tried again.

    One that fails because of its data is tried again without those who have come since it last worked, unless they work
    by themselves, and at the second time taken apart: subscriptions and records that cannot be executed are set aside,
    and all others get what is theirs in the same one commit. Who subscribes to a channel after that is tried by itself
    first.

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
        nodes: NodeResults | None = None,
    ) -> None:
        self._spark, self._tables, self._subscriptions, self._nodes = spark, tables, subscriptions, nodes
        self._set_aside, self._letters, self._settings = set_aside, letters, settings
        self._subscribed = SubscriptionFrames(spark)
        self._strikes, self._stains = Strikes(), Stains()
        self._groups: dict[str, str] = {}
        self._apart: set[str] = set()

    def news(self, compiled: Compiled, results: ChannelResults) -> list[tuple[str, int]]:
        """What the channel will ask a round for: the news of its datasets since it last ran."""
        return [(name, results.seen_version(name)) for name in sorted(compiled.fresh)]

    def has_work(self, compiled: Compiled, results: ChannelResults) -> bool:
        """Whether an execution could find anything."""
        if not self._subscriptions.count(compiled.channel.name):
            return False
        news = self.news(compiled, results)
        return not compiled.quiet or any(self._tables[name].version > since for name, since in news)

    def can_match(self, compiled: Compiled, results: ChannelResults, arrival: Arrival) -> bool:
        """Whether the channel may be executed on records that arrive, before they are stored.

        It must have seen everything before them, and have nobody to be executed for in another way.
        """
        name = compiled.channel.name
        return (
            bool(self._subscriptions.count(name))
            and results.seen_version(arrival.dataset) == arrival.version - 1
            and self.is_for_all(name)
        )

    def is_for_all(self, channel: str) -> bool:
        """Whether a channel is executed for all subscriptions, but those set aside, in the same way."""
        return not self._strikes.is_wary(channel, time.monotonic()) and not self._stains.of(channel)

    def run(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> Execution:
        """Executes the channel on the datasets of ``moment``.

        Raises OvertakenError if that has an arrival that it cannot be the execution of.
        """
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
        started, arrival = time.monotonic(), moment.arrival
        if arrival is None and (execution := self._adopt(compiled, results, moment)) is not None:
            return execution
        task = self._task(compiled, results, moment)
        name = task.name
        try:
            number, rows, failing = self._attempt(task) if arrival is None else self._match(task, arrival)
        except Exception as error:
            if arrival is not None or not trouble.is_of_data(error):
                raise
            # The next time those who have come since it last worked are tried first: very likely it is them.
            self._strikes.suspect(name, (), time.monotonic() + self._settings.set_aside_seconds)
            if not self._strikes.failed(name):
                raise
            self._apart.add(name)
            ids = task.ids()
            log.info("taking an execution apart", channel=name, subscriptions=len(ids), reason=trouble.sentence(error))
            apart = Apart(self._spark, compiled, task.views, ids)
            number, rows, failing = self._rescue(apart, task, error)
        bes, bytes_ = sizes(rows)
        self._strikes.served(name, bes, task.segments)
        return Execution(name, number, bes, bytes_, time.monotonic() - started, failing, arrival is not None)

    def _task(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> _Task:
        name = compiled.channel.name
        aside = ascending([be for be, _, _ in self._set_aside.of(name, time.time())])
        segments = self._subscriptions.segments(name)
        views = {SUBSCRIPTIONS: self._subscribed.view(name, segments, aside)}
        views |= {dataset: moment.whole(dataset) for dataset in compiled.whole}
        views |= {fresh(dataset): moment.fresh(dataset, since) for dataset, since in self.news(compiled, results)}
        versions = {dataset: moment.version(dataset) for dataset in compiled.fresh}
        return _Task(compiled, results, views, versions, segments, aside)

    def forget(self, channel: str) -> None:
        """Lets go of what is kept for a channel."""
        self._subscribed.drop(channel)
        self._strikes.forget(channel)
        self._stains.forget(channel)

    def _adopt(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> Execution | None:
        """The execution by what nodes have found, if they have found all of it and it still holds."""
        name, started = compiled.channel.name, time.monotonic()
        if self._nodes is None or len(compiled.fresh) != 1 or not self.is_for_all(name):
            return None
        [dataset] = compiled.fresh
        version, segments = moment.version(dataset), self._subscriptions.segments(name)
        found = self._nodes.find(compiled, results, dataset, version)
        if found is None:
            return None
        number, rows = results.commit_rows(found, {dataset: version}, datetime.now(UTC))
        bes, bytes_ = sizes(rows)
        self._strikes.served(name, bes, segments)
        return Execution(name, number, bes, bytes_, time.monotonic() - started, on_arrival=True, by_nodes=True)

    def _match(self, task: _Task, arrival: Arrival) -> tuple[int, pa.Table, dict[int, str]]:
        """The execution on records that arrive, committed once these are stored.

        Whatever goes wrong is left to the ordinary execution: it also finds out who is to blame.
        """

        def allowed() -> None:
            arrival.wait()
            if self._subscriptions.segments(task.name).generation != task.segments.generation:
                raise OvertakenError(f"somebody subscribed to {task.name}, or left it, meanwhile")

        found = self._spark.sql(query.bind_views(task.compiled.statement, task.views))
        return *task.results.commit(found, task.versions, datetime.now(UTC), allowed), {}

    def _attempt(self, task: _Task) -> tuple[int, pa.Table, dict[int, str]]:
        """The execution for everybody, or, if some who are on trial fail, without these."""
        on_trial = self._on_trial(task)
        if not len(on_trial):
            return *self._commit(task, task.views, NONE, []), {}
        trial = SeparateTrial(self._spark, task.compiled, task.views, on_trial)
        try:
            if trial.works():
                return *self._commit(task, task.views, NONE, []), {}
            self._apart.add(task.name)
            apart, verdict = trial.judge(self._settings.trial_queries)
            try:
                number, rows = self._commit(task, trial.others, on_trial, shares_of(apart, verdict))
                return number, rows, self._conclude_trial(apart, task, verdict, number)
            finally:
                apart.close()
        finally:
            trial.close()

    def _on_trial(self, task: _Task) -> IdArray:
        """Who is to be tried before the others are executed; nobody, if there are no others."""
        now = time.monotonic()
        if not self._strikes.is_wary(task.name, now):
            return NONE
        everybody = task.segments.ids()
        ids = without(everybody, task.aside)
        on_trial = common(self._strikes.on_trial(task.name, everybody, now), ids)
        for stain in self._stains.of(task.name):
            # They have a share of their own.
            on_trial = on_trial[~stain.among(on_trial)]
        return on_trial if len(on_trial) < len(ids) else NONE

    def _commit(
        self, task: _Task, views: Mapping[str, str], on_trial: IdArray, more: Sequence[DataFrame]
    ) -> tuple[int, pa.Table]:
        """Commits what the channel finds for those in the views, and more; the number and the rows."""
        shares = QueryShares(self._spark, task.compiled.statement, views)
        try:
            found = reduce(DataFrame.unionAll, [self._find_results(task, shares, views, on_trial), *more])
            return task.results.commit(found, task.versions, datetime.now(UTC))
        finally:
            shares.close()

    def _find_results(self, task: _Task, shares: QueryShares, views: Mapping[str, str], on_trial: IdArray) -> DataFrame:
        """What the channel finds; where some do without records that are known to fail, in shares."""
        stains = self._stains.of(task.name)
        if not stains:
            return self._spark.sql(query.bind_views(task.compiled.statement, views))
        ids = without(task.ids(), on_trial)
        whole = [] if concerns_all(stains, ids) else [shares.share(rest(stains), {})]
        return reduce(DataFrame.unionAll, [*whole, *(_stained_share(shares, task.compiled, stain) for stain in stains)])

    def _conclude_trial(self, apart: Apart, task: _Task, verdict: Verdict, number: int) -> dict[int, str]:
        """Takes note of who failed by themselves; who is to be told something, with what.

        Only now, when all others have been served: should they fail as well, everybody is judged together. What is
        committed counts, whatever happens here; who is not set aside fails again, and is then.
        """
        name = task.name
        log.warning("executed without some that were on trial", channel=name, execution=number, reason=apart.reason)
        try:
            failing = self._blame(apart, name, verdict)
            self._stains.put(name, [*self._stains.of(name), *stains_of(apart, verdict)][:MOST_STAINS])
            self._letters.write(name, number, letters_of(apart, verdict), datetime.now(UTC))
        except Exception:
            log.exception("who failed could not be set aside", channel=name, execution=number)
            return {}
        return failing

    def _rescue(self, apart: Apart, task: _Task, error: Exception) -> tuple[int, pa.Table, dict[int, str]]:
        """The execution without those that are to blame for its failure; the number, the rows and who they are."""
        name, results = task.name, task.results
        known = int(np.searchsorted(apart.ids, self._strikes.newest_served(name), side="right"))
        try:
            most = self._settings.bisection_queries
            verdict = judge(len(apart.ids), apart.records, apart.works, most, known)
            failing = self._blame(apart, name, verdict)
            self._stains.put(name, stains_of(apart, verdict))
            self._letters.write(name, results.execution + 1, letters_of(apart, verdict), datetime.now(UTC))
            rescued = reduce(DataFrame.unionAll, shares_of(apart, verdict))
            number, rows = results.commit(rescued, task.versions, datetime.now(UTC))
        except UnclearError as unclear:
            if unclear.found:
                # There are too many to be found at once; without these, the next attempt finds others.
                self._blame(apart, name, Verdict(hopeless=set(unclear.found)))
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
            records=len(letters_of(apart, verdict)),
            reason=apart.reason,
        )
        return number, rows, failing

    def _blame(self, apart: Apart, name: str, verdict: Verdict) -> dict[int, str]:
        """Sets aside who cannot be executed; everybody who is to be told something, with what."""
        hopeless, untried = apart.subscriptions(verdict.hopeless), apart.subscriptions(verdict.untried)
        struck, unclear = apart.subscriptions(verdict.without), apart.subscriptions(verdict.unclear)
        hopeless |= self._strikes.strike(name, struck | unclear)
        seconds = self._settings.set_aside_seconds
        self._strikes.suspect(name, hopeless | struck | unclear | untried, time.monotonic() + seconds)
        aside = f"the channel cannot be executed with these parameters, and is not for {seconds / 3600:g} h"
        reasons = {be: f"{aside}: {apart.reasons.get(be, '')}" for be in sorted(hopeless)}
        self._set_aside.put(name, reasons, time.time() + seconds)
        missed = dict.fromkeys(untried, _UNTRIED)
        missed |= {be: f"{_WITHOUT_SOME}: {apart.reasons.get(be, '')}" for be in struck}
        missed |= {be: f"{_WITHOUT_ALL}: {apart.reasons.get(be, '')}" for be in unclear}
        return reasons | {be: missed[be] for be in sorted(missed.keys() - hopeless)}


def _stained_share(shares: QueryShares, compiled: Compiled, stain: Stain) -> DataFrame:
    """The share of those who do without some records."""
    left_out = {dataset: stain.of(dataset) for dataset in compiled.whole}
    replaced = {dataset: leave_out(shares.table(dataset), some) for dataset, some in left_out.items() if some}
    return shares.share(stain.condition, replaced)
