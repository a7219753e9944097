"""Runs channels when they are due, several at the same time, in rounds that share what they read."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.data.channels.check import Compiled
from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.frames import Round
from tocsin.data.channels.timetable import State, Timetable
from tocsin.data.lake.table import Table
from tocsin.data.results import Results
from tocsin.errors import TocsinError
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
    """Owns the timetable and the threads.

    What can go wrong: an execution fails (that channel says so and is tried again, the others go on); it takes longer
    than its period (the next one is later, and the missed ones are counted); the process dies (the results' markers
    say what had been seen).

    Args:
        executed: called after each execution that found something, from one of the threads.
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
        self._pool.shutdown()

    def add(self, compiled: Compiled, results: Results) -> None:
        """Takes a channel on, or its new definition."""
        with self._changed:
            self._wait_while_running(compiled.channel.name)
            self._channels[compiled.channel.name] = (compiled, results)
            self._timetable.add(compiled.channel.name, compiled.channel.period, time.time())
            self._changed.notify_all()

    def remove(self, name: str) -> None:
        """Lets a channel go, once its execution at hand has ended."""
        with self._changed:
            self._wait_while_running(name)
            self._timetable.remove(name)
            self._channels.pop(name, None)
        self._executor.forget(name)

    def committed(self, dataset: str) -> None:
        """There is something new in a dataset."""
        with self._changed:
            for name, (compiled, _) in self._channels.items():
                if compiled.channel.period is None and dataset in (compiled.fresh or compiled.whole):
                    self._timetable.poke(name, time.time())
            self._changed.notify_all()

    def between_executions(self, name: str, action: Callable[[Compiled, Results], None]) -> None:
        """Does something to a channel's results while it does not run."""
        with self._changed:
            self._wait_while_running(name)
            action(*self._channels[name])

    def status(self, name: str) -> Status:
        """How a channel is doing."""
        with self._changed:
            if name not in self._timetable:
                return Status("stopped", "", 0, 0.0)
            entry = self._timetable[name]
            return Status(entry.state, entry.error, entry.missed, self._seconds.get(name, 0.0))

    def _wait_while_running(self, name: str) -> None:
        self._changed.wait_for(lambda: name not in self._timetable or self._timetable[name].state is not State.RUNNING)

    def _loop(self) -> None:
        while True:
            with self._changed:
                due = self._timetable.due(time.time())
                if not due:
                    if self._stopping:
                        return
                    wait = self._timetable.next() - time.time()
                    self._changed.wait(None if math.isinf(wait) else max(wait, 0.001))
                    continue
                channels = {name: self._channels[name] for name in due}
            if self._stopping:
                return
            self._round(channels)

    def _round(self, channels: Mapping[str, tuple[Compiled, Results]]) -> None:
        """Begins the executions that are due, on the datasets as they are now."""
        working = {name: both for name, both in channels.items() if self._has_work(name, *both)}
        news = [item for compiled, results in working.values() for item in self._executor.news(compiled, results)]
        moment = Round(self._spark, self._tables, news)
        running = [self._pool.submit(self._execute, *both, moment) for both in working.values()]
        threading.Thread(target=_close_after, args=(moment, running), daemon=True).start()

    def _has_work(self, name: str, compiled: Compiled, results: Results) -> bool:
        if self._executor.has_work(compiled, results):
            return True
        self._finished(name)
        return False

    def _execute(self, compiled: Compiled, results: Results, moment: Round) -> None:
        name = compiled.channel.name
        try:
            execution = self._executor.run(compiled, results, moment)
        except Exception as error:
            self._failed(name, error)
            return
        self._seconds[name] = execution.seconds
        self._finished(name)
        if len(execution.bes):
            self._executed(execution)

    def _finished(self, name: str) -> None:
        with self._changed:
            missed = self._timetable.finished(name, time.time())
            self._changed.notify_all()
        if missed:
            log.warning("the channel's execution took longer than its period", channel=name, missed=missed)

    def _failed(self, name: str, error: Exception) -> None:
        reason = _reason(error)
        with self._changed:
            again = self._timetable.failed(name, reason, time.time())
            self._changed.notify_all()
        log.error("an execution failed", channel=name, reason=reason, again_in=round(again - time.time(), 1))


def _close_after(moment: Round, running: list[Future[None]]) -> None:
    for execution in running:
        execution.result()
    moment.close()


def _reason(error: Exception) -> str:
    """The first sentence of what went wrong, for people."""
    if not isinstance(error, TocsinError | PySparkException):
        log.exception("an execution failed in an unforeseen way")
    text = str(error).strip().splitlines()
    return text[0][:500] if text else type(error).__name__
