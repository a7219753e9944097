"""Channels for a runner, with made-up executions."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import numpy as np

from tocsin.data.channels.arrival import Arrival, OvertakenError
from tocsin.data.channels.execution import Execution
from tocsin.data.channels.frames import ExecutionRound
from tocsin.data.channels.runner import Runner
from tocsin.data.compiler.check import Compiled
from tocsin.data.results import ChannelResults
from tocsin.errors import NotFoundError
from tocsin.schema.definitions import Channel, ChannelKind

SECONDS: Final = 30


class Executions:
    """In the place of the executor: each run waits until it may end, and ends as it was told to."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.runs: list[str] = []
        self.numbers: dict[str, int] = {}
        self.gates: dict[str, threading.Event] = {}
        self.failures: dict[str, deque[Exception]] = {}
        self.without_work: set[str] = set()
        self.lost: set[str] = set()
        self.forgotten: list[str] = []
        self.cancelled: list[str] = []
        self.matched: list[tuple[str, int, bool]] = []

    def gate(self, name: str) -> threading.Event:
        """Keeps the runs of a channel from ending until it is set."""
        return self.gates.setdefault(name, threading.Event())

    def news(self, compiled: Compiled, results: ChannelResults) -> list[tuple[str, int]]:
        return []

    def has_work(self, compiled: Compiled, results: ChannelResults) -> bool:
        self._look_for(compiled.channel.name)
        return compiled.channel.name not in self.without_work

    def can_match(self, compiled: Compiled, results: ChannelResults, arrival: Arrival) -> bool:
        self._look_for(compiled.channel.name)
        return not arrival._stored.done()

    def _look_for(self, name: str) -> None:
        if name in self.lost:
            raise NotFoundError("there is no such channel any more")

    def run(self, compiled: Compiled, results: ChannelResults, moment: ExecutionRound) -> Execution:
        name = compiled.channel.name
        assert name not in self.running, "one channel runs once at a time"
        self.running.add(name)
        self.runs.append(name)
        try:
            if name in self.gates:
                assert self.gates[name].wait(SECONDS)
            if name in self.cancelled:
                raise RuntimeError("cancelled")
            if self.failures.get(name):
                raise self.failures[name].popleft()
            if moment.arrival is not None:
                self._await(name, moment.arrival)
        finally:
            self.running.discard(name)
        self.numbers[name] = self.numbers.get(name, 0) + 1
        return Execution(name, self.numbers[name], np.array([1]), np.array([10]), 0.5)

    def _await(self, name: str, arrival: Arrival) -> None:
        try:
            arrival.wait()
        except OvertakenError:
            self.matched.append((name, arrival.version, False))
            raise
        self.matched.append((name, arrival.version, True))

    def cancel(self, channel: str) -> None:
        self.cancelled.append(channel)
        if channel in self.gates:
            self.gates[channel].set()

    def is_apart(self, channel: str) -> bool:
        return False

    def forget(self, channel: str) -> None:
        self.forgotten.append(channel)


class Told:
    """What was told of executions, with something to do in between."""

    def __init__(self) -> None:
        self.executions: list[tuple[str, int]] = []
        self.failures: list[tuple[str, str]] = []
        self.first: Callable[[Execution], None] = lambda _: None

    def failing(self, channel: str, reason: str) -> None:
        self.failures.append((channel, reason))

    def __call__(self, execution: Execution) -> None:
        self.first(execution)
        self.executions.append((execution.channel, execution.number))


def compiled(name: str, period: float | None = None) -> Compiled:
    kind = ChannelKind.CONTINUOUS if period is None else ChannelKind.REPETITIVE
    return Compiled(Channel(name, kind, (), "", period), "", frozenset(), frozenset({"Reports"}), True, ())


def add(runner: Runner, name: str, period: float | None = None) -> None:
    runner.add(compiled(name, period), cast(ChannelResults, None))
