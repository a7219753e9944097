"""Executions from when they are due until they are over: each waits for its turn, runs in a thread, and is watched."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from tocsin.data.channels import trouble
from tocsin.data.channels.execution import Executor
from tocsin.data.channels.turns import Turns
from tocsin.log import get_logger
from tocsin.settings import ChannelsSettings

log = get_logger(__name__)

_MOST_THREADS: Final = 1024
_APART: Final = 9


@dataclass
class RunningExecution:
    """An execution at hand: since when, when it will be slow, and when it has taken too long."""

    since: float
    slow_at: float
    ends_at: float
    cancelled: bool = False
    unwanted: bool = False


class ExecutionPool:
    """What waits for its turn and what runs. Its methods may be called from any thread; those that say so, with the
    lock held.

    What can go wrong: an execution takes longer than executions may (it is cancelled, and the others are given more
    time), or is no longer wanted (it is cancelled); it cannot be cancelled (it is logged, and its turn ends with it).

    Args:
        changed: the lock, told of whatever begins.
    """

    def __init__(self, settings: ChannelsSettings, changed: threading.Condition) -> None:
        self._settings, self._changed = settings, changed
        self._executor: Executor
        self._turns = Turns(settings.workers)
        self._waiting: dict[str, Callable[[], None]] = {}
        self.running: dict[str, RunningExecution] = {}
        self.stopping = False
        # How many run at a time is for the turns to say.
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="execution")

    @property
    def room(self) -> int:
        """How many quick executions could begin at once; to be called with the lock held."""
        return 0 if self.stopping else self._turns.room

    def is_slow(self, name: str) -> bool:
        """Whether a channel's executions take long; to be called with the lock held."""
        return self._turns.is_slow(name)

    def forget(self, name: str) -> None:
        """A channel that is no more, or another one now; to be called with the lock held."""
        self._turns.forget(name)

    def start(self, executor: Executor) -> None:
        """Executions are ended by this one."""
        self._executor = executor

    def abandon(self) -> None:
        """Begins no more, and cancels what is at hand. What waits is called all the same: it has nothing to do now but
        to let go of what it keeps."""
        with self._changed:
            self.stopping = True
            abandoned, self._waiting = list(self._waiting.values()), {}
            running = list(self.running)
            self._changed.notify_all()
        for name in running:
            self._cancel(name)
        for execute in abandoned:
            execute()

    def close(self) -> None:
        """Waits for what is at hand."""
        self._threads.shutdown(cancel_futures=True)

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        """Does some work in a thread, whatever else is at hand."""
        self._threads.submit(work, *arguments)

    def enter(self, executions: Mapping[str, Callable[[], None]]) -> None:
        """Has executions wait for their turns; each ends with :meth:`end`."""
        with self._changed:
            for name, execute in executions.items():
                self._waiting[name] = execute
                self._turns.enter(name)
            self._begin_next()

    def end(self, name: str) -> RunningExecution | None:
        """An execution is over, for better or worse: the next one's turn has come."""
        with self._changed:
            running = self.running.pop(name, None)
            quick = running is not None and time.monotonic() - running.since < self._settings.slow_seconds
            self._turns.left(name, quick)
            self._begin_next()
        return running

    def cancel(self, name: str) -> None:
        """Ends a channel's execution at hand, if there is one, as nobody wants what it finds any more."""
        with self._changed:
            running = self.running.get(name)
            if running is not None:
                running.unwanted = True
        if running is not None:
            self._cancel(name)

    def look_after(self, now: float) -> None:
        """Takes note of executions that have become slow, and cancels those that take too long; to be called with the
        lock held."""
        for name, running in self.running.items():
            if now >= running.slow_at:
                running.slow_at = math.inf
                self._turns.slowed(name)
        overdue = [name for name, running in self.running.items() if now >= running.ends_at + self._extra(name)]
        for name in overdue:
            self.running[name].ends_at = math.inf
            self.running[name].cancelled = True
            self._threads.submit(self._cancel, name)
        if overdue:
            # The others may have waited for the cores that these held, through no fault of theirs.
            for running in self.running.values():
                running.ends_at = max(running.ends_at, now + self._settings.execution_seconds)
        self._begin_next()

    def next_look(self) -> float:
        """When to look after them again; to be called with the lock held."""
        looks = [min(each.slow_at, each.ends_at + self._extra(name)) for name, each in self.running.items()]
        return min(looks, default=math.inf)

    def _extra(self, name: str) -> float:
        """Finding out what an execution fails with takes many queries."""
        return _APART * self._settings.execution_seconds if self._executor.is_apart(name) else 0.0

    def _begin_next(self) -> None:
        """Begins whatever has its turn; to be called with the lock held."""
        while not self.stopping and (name := self._turns.next()) is not None:
            now = time.monotonic()
            settings = self._settings
            self.running[name] = RunningExecution(now, now + settings.slow_seconds, now + settings.execution_seconds)
            self._threads.submit(self._waiting.pop(name))
            self._changed.notify_all()

    def _cancel(self, name: str) -> None:
        try:
            self._executor.cancel(name)
        except Exception as error:
            log.warning("an execution could not be cancelled", channel=name, reason=trouble.sentence(error))
