"""Runs channels when they are due, several at the same time, in rounds that share what they read."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tocsin.data.channels import trouble
from tocsin.data.channels.check import Compiled
from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.frames import Round
from tocsin.data.channels.timetable import Timetable
from tocsin.data.lake.table import Table
from tocsin.data.results import Results
from tocsin.errors import UnavailableError
from tocsin.log import get_logger
from tocsin.settings import Channels

log = get_logger(__name__)


@dataclass(frozen=True)
class Status:
    """How a channel is doing, for people."""

    state: str
    error: str
    missed: int
    last_seconds: float


class Runner:
    """Owns the timetable and the threads. Its methods may be called from any thread.

    What can go wrong: an execution fails (that channel says so and is tried again, the others go on); it takes longer
    than its period (the next one is later, and the missed ones are counted); the process dies (the results' markers
    say what had been seen).

    Args:
        executed: called after each execution, from one of the threads, in the order of a channel's executions.
    """

    def __init__(
        self,
        spark: SparkSession,
        executor: Executor,
        tables: Mapping[str, Table],
        settings: Channels,
        executed: Callable[[Execution], None],
    ) -> None:
        self._spark, self._executor, self._tables, self._executed = spark, executor, tables, executed
        self._timetable = Timetable(settings.retry_seconds, settings.max_retry_seconds)
        self._channels: dict[str, tuple[Compiled, Results]] = {}
        self._seconds: dict[str, float] = {}
        self._changed = threading.Condition()
        self._stopping = False
        # Turns are counted from the epoch, but a clock that is set must not keep anybody waiting.
        self._epoch = time.time() - time.monotonic()
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="execution")
        self._thread = threading.Thread(target=self._loop, name="rounds", daemon=True)

    def start(self) -> None:
        """Begins to run channels."""
        self._thread.start()

    def stop(self) -> None:
        """Runs no more, once the executions at hand have ended."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def add(self, compiled: Compiled, results: Results) -> None:
        """Takes a channel on, or its new definition."""
        name = compiled.channel.name
        with self._changed:
            self._wait_until_idle(name)
            self._channels[name] = (compiled, results)
            self._timetable.add(name, compiled.channel.period, self._now())
            self._changed.notify_all()

    def remove(self, name: str) -> None:
        """Lets a channel go, once its execution at hand has ended."""
        with self._changed:
            self._wait_until_idle(name)
            self._timetable.remove(name)
            self._channels.pop(name, None)
            self._seconds.pop(name, None)
        self._executor.forget(name)

    def committed(self, dataset: str) -> None:
        """There is something new in a dataset."""
        with self._changed:
            for name, (compiled, _) in self._channels.items():
                if compiled.channel.period is None and dataset in (compiled.fresh or compiled.whole):
                    self._timetable.poke(name, self._now())
            self._changed.notify_all()

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
            if entry is None:
                return Status("stopped", "", 0, 0.0)
            return Status(entry.state, entry.error, entry.missed, self._seconds.get(name, 0.0))

    def _now(self) -> float:
        return self._epoch + time.monotonic()

    def _wait_until_idle(self, name: str) -> None:
        """To be called with the lock held."""

        def idle() -> bool:
            entry = self._timetable.find(name)
            return entry is None or entry.ready

        self._changed.wait_for(lambda: self._stopping or idle())
        if self._stopping:
            raise UnavailableError("the data cluster is stopping; try again when it has started")

    def _loop(self) -> None:
        while due := self._wait_for_due():
            try:
                self._round(due)
            except Exception as error:
                for name in due:
                    self._failed(name, error)

    def _wait_for_due(self) -> dict[str, tuple[Compiled, Results]]:
        """The channels to run now, when there are some; none means to stop."""
        with self._changed:
            while not self._stopping:
                due = self._timetable.due(self._now())
                if due:
                    return {name: self._channels[name] for name in due}
                wait = self._timetable.next() - self._now()
                self._changed.wait(None if math.isinf(wait) else max(wait, 0.001))
        return {}

    def _round(self, channels: Mapping[str, tuple[Compiled, Results]]) -> None:
        """Begins the executions that are due, on the datasets as they are now."""
        working = {name: both for name, both in channels.items() if self._has_work(name, *both)}
        news = [item for compiled, results in working.values() for item in self._executor.news(compiled, results)]
        moment = Round(self._spark, self._tables, news)
        left = itertools.count(1)

        def done(_: Future[None]) -> None:
            if next(left) == len(working):
                moment.close()

        for both in working.values():
            self._pool.submit(self._execute, *both, moment).add_done_callback(done)

    def _has_work(self, name: str, compiled: Compiled, results: Results) -> bool:
        try:
            if self._executor.has_work(compiled, results):
                return True
        except Exception as error:
            self._failed(name, error)
        else:
            self._finished(name)
        return False

    def _execute(self, compiled: Compiled, results: Results, moment: Round) -> None:
        name = compiled.channel.name
        if self._stopping:
            return
        try:
            execution = self._executor.run(compiled, results, moment)
        except Exception as error:
            self._failed(name, error)
            return
        self._seconds[name] = execution.seconds
        try:
            # Before the channel may run again, so that executions are told of in their order.
            self._executed(execution)
        except Exception:
            log.exception("an execution could not be told of", channel=name, execution=execution.number)
        self._finished(name)

    def _finished(self, name: str) -> None:
        with self._changed:
            missed = self._timetable.finished(name, self._now())
            self._changed.notify_all()
        if missed:
            log.warning("the channel's execution took longer than its period", channel=name, missed=missed)

    def _failed(self, name: str, error: Exception) -> None:
        reason = _reason(error)
        with self._changed:
            again = self._timetable.failed(name, reason, self._now())
            wait = again - self._now()
            self._changed.notify_all()
        log.error("an execution failed", channel=name, reason=reason, again_in=round(wait, 1))


def _reason(error: Exception) -> str:
    """What went wrong, for people."""
    if not trouble.is_foreseen(error):
        log.exception("an execution failed in an unforeseen way")
    return trouble.sentence(error)
