"""Runs channels when they are due, several at the same time, in rounds that share what they read."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data.channels import trouble
from tocsin.data.channels.arrival import Arrival
from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.frames import ExecutionRound
from tocsin.data.channels.matches import NodeMatch
from tocsin.data.channels.noderesults import NodeResults
from tocsin.data.channels.pool import ExecutionPool, RunningExecution
from tocsin.data.channels.timetable import Timetable
from tocsin.data.compiler.check import Compiled
from tocsin.data.lake.table import Table
from tocsin.data.results import ChannelResults
from tocsin.errors import UnavailableError
from tocsin.log import get_logger
from tocsin.settings import ChannelsSettings

log = get_logger(__name__)


@dataclass(frozen=True)
class Status:
    """How a channel is doing, for people."""

    state: str
    error: str
    missed: int
    last_seconds: float
    by_nodes: int = 0
    """Executions since the start that nodes have computed."""


class Runner:
    """Owns the timetable, and has an :class:`ExecutionPool` run what is due. Its methods may be called from any thread.

    What can go wrong: an execution fails (that channel says so and is tried again, the others go on); it takes longer
    than its period (the next one is later, and the missed ones are counted) or longer than executions may (it is
    cancelled, and tried again later); the process dies (the results' markers say what had been seen). Before
    :meth:`start` it takes channels on, and runs none.

    Args:
        executed: called after each execution, from one of the threads, in the order of a channel's executions.
        failing: called with a channel that failed again and again, and with what everybody may know of the reason.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        settings: ChannelsSettings,
        executed: Callable[[Execution], None],
        failing: Callable[[str, str], None] = lambda _channel, _reason: None,
    ) -> None:
        self._spark: SparkSession
        self._executor: Executor
        self._tables, self._executed, self._settings, self._failing = tables, executed, settings, failing
        self._nodes: NodeResults | None = None
        self.started = False
        self._timetable = Timetable(settings.retry_seconds, settings.max_retry_seconds)
        self._channels: dict[str, tuple[Compiled, ChannelResults]] = {}
        self._seconds: dict[str, float] = {}
        self._by_nodes: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._pool = ExecutionPool(settings, self._changed)
        # Turns are counted from the epoch, but a clock that is set must not keep anybody waiting.
        self._epoch = time.time() - time.monotonic()
        self._thread = threading.Thread(target=self._loop, name="rounds", daemon=True)

    def start(self, spark: SparkSession, executor: Executor, nodes: NodeResults | None = None) -> None:
        """Begins to run channels, some of which ``nodes`` may have matched."""
        self._spark, self._executor, self._nodes, self.started = spark, executor, nodes, True
        self._pool.start(executor)
        self._thread.start()

    def stop(self) -> None:
        """Runs no more; executions at hand are cancelled, and done again after the next start."""
        self._pool.abandon()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.close()

    def add(self, compiled: Compiled, results: ChannelResults) -> None:
        """Takes a channel on, or its new definition."""
        name = compiled.channel.name
        with self._changed:
            self._wait_until_idle(name)
            self._channels[name] = (compiled, results)
            self._timetable.add(name, compiled.channel.period, self._now())
            self._pool.forget(name)
            self._changed.notify_all()

    def remove(self, name: str) -> None:
        """Lets a channel go, once its execution at hand has ended; it is not waited for to find anything."""
        self.cancel(name)
        with self._changed:
            self._wait_until_idle(name)
            self._timetable.remove(name)
            self._pool.forget(name)
            self._channels.pop(name, None)
            self._seconds.pop(name, None)
            self._by_nodes.pop(name, None)
        if self.started:
            self._executor.forget(name)

    def cancel(self, name: str) -> None:
        """Ends a channel's execution at hand, if there is one, as nobody wants what it finds any more."""
        self._pool.cancel(name)

    def matched(self, table: Table, version: int, batches: Sequence[Mapping[str, NodeMatch]]) -> None:
        """A version is stored, in whose batches nodes have found something of some channels."""
        if self._nodes is not None:
            self._nodes.put(table, version, batches)

    def committed(self, dataset: str) -> None:
        """There is something new in a dataset."""
        if self._nodes is not None:
            self._nodes.shared.committed(dataset)
        with self._changed:
            for name, (compiled, _) in self._channels.items():
                if compiled.channel.period is None and dataset in (compiled.fresh or compiled.whole):
                    self._timetable.poke(name, self._now())
            self._changed.notify_all()

    @contextmanager
    def arriving(self, dataset: str, rows: pa.Table) -> Iterator[None]:
        """To be entered while rows are stored as the next version of a dataset.

        Channels that can be are matched with them meanwhile, and have committed nothing before they are stored. Those
        that cannot, or fail at it, look at what is new when they are told that there is something.
        """
        table = self._tables[dataset]
        arrival = Arrival(dataset, table.version + 1, rows)
        with self._changed:
            is_little = 0 < rows.nbytes <= self._settings.arriving_bytes
            if is_little and self.started and not self._pool.stopping:
                # Whatever it has to look up, records are not kept from being stored.
                self._pool.submit(self._match, arrival)
        stored = False
        try:
            yield
            stored = table.version == arrival.version
        finally:
            arrival.end(stored)

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """While entered, the channel does not run; its execution at hand is waited for."""
        with self._changed:
            self._wait_until_idle(name)
            entry = self._timetable.find(name)
            if entry is not None:
                entry.held = True
        try:
            yield
        finally:
            with self._changed:
                if entry is not None:
                    entry.held = False
                self._changed.notify_all()

    def status(self, name: str) -> Status:
        """How a channel is doing."""
        with self._changed:
            entry = self._timetable.find(name)
            if not self.started or entry is None:
                return Status("stopped" if self.started else "starting", "", 0, 0.0)
            seconds, by_nodes = self._seconds.get(name, 0.0), self._by_nodes[name]
            return Status(entry.state, entry.error, entry.missed, seconds, by_nodes)

    def is_idle(self, name: str) -> bool:
        """Whether a continuous channel neither runs nor is about to: the next records may be matched on arrival."""
        with self._changed:
            return self._timetable.is_idle(name)

    def _now(self) -> float:
        return self._epoch + time.monotonic()

    def _wait_until_idle(self, name: str) -> None:
        """To be called with the lock held."""

        def idle() -> bool:
            entry = self._timetable.find(name)
            return entry is None or entry.ready

        self._changed.wait_for(lambda: self._pool.stopping or idle())
        if self._pool.stopping:
            raise UnavailableError("the data cluster is stopping; try again when it has started")

    def _loop(self) -> None:
        while due := self._wait_for_due():
            try:
                self._round(due)
            except Exception as error:
                for name in due:
                    self._failed(name, error)

    def _wait_for_due(self) -> dict[str, tuple[Compiled, ChannelResults]]:
        """The channels to run now, when there are some; none means to stop."""
        with self._changed:
            while not self._pool.stopping:
                self._pool.look_after(time.monotonic())
                due = self._timetable.due(self._now())
                if due:
                    return {name: self._channels[name] for name in due}
                wait = min(self._timetable.next() - self._now(), self._pool.next_look() - time.monotonic())
                self._changed.wait(None if math.isinf(wait) else max(wait, 0.001))
        return {}

    def _round(self, channels: Mapping[str, tuple[Compiled, ChannelResults]]) -> None:
        """Begins the executions that are due, on the datasets as they are now."""
        working = {name: both for name, both in channels.items() if self._has_work(name, *both)}
        news = [item for compiled, results in working.values() for item in self._executor.news(compiled, results)]
        self._begin(working, ExecutionRound(self._spark, self._tables, news))

    def _match(self, arrival: Arrival) -> None:
        """Begins the executions of channels that have nothing else to do on what arrives."""
        with self._changed:
            idle = {name: self._channels[name] for name in self._matchable(arrival.dataset)}
        working = {name: both for name, both in idle.items() if self._can_match(name, *both, arrival)}
        try:
            if working:
                self._begin(working, ExecutionRound(self._spark, self._tables, [], arrival))
        except Exception as error:
            for name in working:
                self._postpone(name, error)

    def _matchable(self, dataset: str) -> list[str]:
        """The channels that could be executed at once on new records; to be called with the lock held."""
        names = [name for name, (compiled, _) in self._channels.items() if compiled.is_matched_with(dataset)]
        quick = [name for name in names if not self._pool.is_slow(name)]
        return list(itertools.islice(filter(self._timetable.begin_idle, quick), self._pool.room))

    def _can_match(self, name: str, compiled: Compiled, results: ChannelResults, arrival: Arrival) -> bool:
        try:
            if self._executor.can_match(compiled, results, arrival):
                return True
        except Exception as error:
            self._postpone(name, error)
        else:
            self._finished(name)
        return False

    def _begin(self, working: Mapping[str, tuple[Compiled, ChannelResults]], moment: ExecutionRound) -> None:
        """Begins executions that belong together, each when its turn has come."""
        left = itertools.count(1)

        def execute(name: str) -> None:
            try:
                self._execute(*working[name], moment)
            finally:
                if next(left) == len(working):
                    moment.close()

        self._pool.enter({name: partial(execute, name) for name in working})

    def _has_work(self, name: str, compiled: Compiled, results: ChannelResults) -> bool:
        try:
            if self._executor.has_work(compiled, results):
                return True
        except Exception as error:
            self._failed(name, error)
        else:
            self._finished(name)
        return False

    def _execute(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> None:
        name = compiled.channel.name
        if self._pool.stopping:
            return
        try:
            execution = self._executor.run(compiled, results, moment)
        except Exception as error:
            self._gave_up(name, self._pool.end(name), error, moment.arrival is not None)
            return
        self._pool.end(name)
        self._seconds[name] = execution.seconds
        self._by_nodes[name] += execution.by_nodes
        try:
            # Before the channel may run again, so that executions are told of in their order.
            self._executed(execution)
        except Exception:
            log.exception("an execution could not be told of", channel=name, execution=execution.number)
        self._finished(name)

    def _gave_up(self, name: str, running: RunningExecution | None, error: Exception, matched: bool) -> None:
        """An execution failed, or was made to; if it was ``matched`` with what arrived, another one follows."""
        if self._pool.stopping:
            return
        if running is not None and running.unwanted:
            self._finished(name)
        elif running is not None and running.cancelled:
            seconds = self._settings.execution_seconds
            reason = f"the execution took longer than {seconds:g} s (channels.execution_seconds) and was cancelled"
            self._report(name, reason, reason, at_least=seconds)
        elif matched:
            self._postpone(name, error)
        else:
            self._failed(name, error)

    def _postpone(self, name: str, error: Exception) -> None:
        """Leaves it to an ordinary execution to find what is new, and what is wrong if anything is."""
        log.debug("not matched on arrival", channel=name, reason=trouble.sentence(error))
        with self._changed:
            self._timetable.note_success(name, self._now())
            if self._timetable.find(name) is not None:
                self._timetable.poke(name, self._now())
            self._changed.notify_all()

    def _finished(self, name: str) -> None:
        with self._changed:
            missed = self._timetable.note_success(name, self._now())
            self._changed.notify_all()
        if missed:
            log.warning("the channel's execution took longer than its period", channel=name, missed=missed)

    def _failed(self, name: str, error: Exception) -> None:
        # A disk that has room again is to be noticed soon.
        at_most = self._settings.retry_seconds if trouble.is_of_disk(error) else math.inf
        self._report(name, _reason(error), trouble.kind(error), at_most=at_most)

    def _report(self, name: str, reason: str, public: str, at_least: float = 0.0, at_most: float = math.inf) -> None:
        """Says what went wrong; ``public`` is what subscribers are told, who must not see others' values."""
        with self._changed:
            again = self._timetable.note_failure(name, reason, self._now(), at_least, at_most)
            wait, lasting = again - self._now(), self._timetable.lasting(name)
            self._changed.notify_all()
        log.error("an execution failed", channel=name, reason=reason, again_in=round(wait, 1))
        if lasting:
            self._failing(name, f"the channel cannot be executed at present, and is tried again: {public}")


def _reason(error: Exception) -> str:
    """What went wrong, for people."""
    if not trouble.is_foreseen(error):
        log.exception("an execution failed in an unforeseen way")
    return trouble.sentence(error)
