"""A whole network on virtual time: programs use the client library as it is, and an hour takes a moment.

Brokers, coordinator and subscribers are the cores that are shipped, and the network between them is the simulator's:
messages are under way for a while, connections break, and a seed decides how. The data cluster finds what a test says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from tocsin.broker.limits import BrokerLimits
from tocsin.client.coordinator import ANSWER_SECONDS, Location
from tocsin.client.driver import ClientEnvironment
from tocsin.client.rules import Rules
from tocsin.client.subscriber import Subscriber
from tocsin.coordinator import answers, events
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.errors import NotFoundError
from tocsin.simulate import coordinatorhost, datahost
from tocsin.simulate.network import Conditions
from tocsin.simulate.system import Setup, System
from tocsin.testing.checker import Checker
from tocsin.testing.memory import MemoryCoordinator, MemorySocket, Program, wait_for_answer
from tocsin.testing.scripted import Parameters, Rows, ScriptedData
from tocsin.testing.virtualtime import VirtualEventLoop

T = TypeVar("T")

DATA: Final = datahost.HOST
COORDINATOR: Final = coordinatorhost.HOST
_DAY: Final = 86_400.0


class VirtualNetwork:
    """Everything that happens in it follows from the test and the ``seed``. Hosts are known by name: brokers,
    subscribers, ``"coordinator"`` and ``"data"``.

    Every channel exists, in the spelling in which it is first heard of. Nothing is executed or breaks unless a test
    says so; subscribers are moved when brokers are unevenly loaded, as anywhere. What is published is taken, and kept
    nowhere.

    Args:
        brokers: their names; one, if none is named.
        seed: for how long messages take, when ends of a broken connection notice, and how long clients wait.
        conditions: how the network is.
        limits: of the brokers.
        coordinator: how patient the coordinator is.
        show: is given a line for all that a process of the network is told.

    Attributes:
        checker: notes what programs read through it, and says what they were not given once and in order.
    """

    def __init__(
        self,
        *brokers: str,
        seed: int = 0,
        conditions: Conditions | None = None,
        limits: BrokerLimits | None = None,
        coordinator: CoordinatorLimits | None = None,
        show: Callable[[str], None] | None = None,
    ) -> None:
        setup = Setup(conditions or Conditions(), limits or BrokerLimits(), coordinator or CoordinatorLimits())
        self._data = ScriptedData(window=setup.brokers.rate_seconds)
        self._system = System(list(brokers or ("a",)), seed, setup, show, self._data)
        self._random = Random(seed)
        self._began = self._system.clock.now
        self._names: dict[str, str] = {}
        self._programs: dict[str, Program] = {}
        self.checker = Checker(self.executions_with_results)

    @property
    def now(self) -> float:
        """How many seconds have passed since the network began."""
        return self._system.clock.now - self._began

    def run(self, main: Coroutine[Any, Any, T], seconds: float = _DAY) -> T:
        """Runs a program to its end, on virtual time. TimeoutError if that has not come after so many seconds of it."""
        make_loop = partial(VirtualEventLoop, self._system.clock)
        with asyncio.Runner(loop_factory=make_loop) as runner:
            return runner.run(asyncio.wait_for(main, seconds))

    async def register(self, name: str) -> str:
        """A subscriber's token."""
        answer = await self._ask(events.RegisterUser(0, name))
        assert isinstance(answer, answers.Registered)
        self._names[answer.token] = name
        return answer.token

    def connect(self, token: str, *, location: Location | None = None, rules: Rules | None = None) -> Subscriber:
        """What :func:`tocsin.connect` gives: a subscriber, connected while in its ``async with``, on a host that has
        its name. Who connects again is a program that was started again."""
        name, rules = self._names[token], rules or Rules()
        program = self._programs[name] = Program(self._system.world, name)
        coordinator = MemoryCoordinator(program, rules.ask_seconds)
        environment = ClientEnvironment(partial(MemorySocket, program), Random(self._random.random()))
        return Subscriber(coordinator, token, location, rules, environment)

    def execute(self, channel: str, times: int = 1, find: Callable[[Parameters], Rows] | None = None) -> None:
        """Runs a channel. ``find`` says which rows it finds for the parameters of a subscription; else it is one row
        for everybody, with the numbers of the subscription and of the execution."""
        channel = self._data.spelling_of(channel)
        for _ in range(times):
            self._system.execute(channel, self._data.prepare(channel, find) if find else lambda _: True)

    def executions_with_results(self) -> dict[int, list[int]]:
        """The executions that found something for each BE subscription: what everybody is owed."""
        return {be: list(executions) for be, executions in self._data.found.items()}

    def crash(self, host: str) -> None:
        """A process ends at once; the others learn of it, or miss it. Of a subscriber's program nothing gets out any
        more, not even a goodbye: cancel its task, and connect anew."""
        self._system.remark(f"{host} crashes")
        self._process(host).crash()

    def start(self, host: str) -> None:
        """A broker, the coordinator or the data cluster starts again, with what it had on its disk."""
        match host:
            case "data":
                self._system.start_data()
            case "coordinator":
                self._system.start_coordinator()
            case _:
                self._system.start_broker(host)

    def cut(self, host: str, other: str) -> None:
        """Nothing gets through between two hosts any more. Connections stall, and break if that lasts."""
        self._system.remark(f"nothing gets through between {host} and {other}")
        self._system.network.sever(host, other)

    def heal(self) -> None:
        """Everything gets through everywhere."""
        self._system.remark("all gets through everywhere")
        self._system.network.mend_all()

    def drop(self, channel: str) -> None:
        """Drops a channel; brokers are told."""
        self._system.drop(self._data.spelling_of(channel))

    async def drain(self, broker: str, on: bool = True) -> None:
        """Has a broker emptied."""
        await self._ask(events.Drain(0, broker, on))

    def where(self, name: str) -> str | None:
        """The broker that a subscriber is on, as the coordinator has it."""
        return self._system.coordinator.core.view.assignment(name).broker or None

    def _process(self, host: str) -> Any:
        processes = {
            DATA: self._system.data,
            COORDINATOR: self._system.coordinator,
            **self._system.brokers,
            **self._programs,
        }
        if host not in processes:
            raise NotFoundError(f"there is no host {host}; there are {', '.join(sorted(processes))}")
        return processes[host]

    async def _ask(self, request: events.Request) -> answers.Answer:
        return await wait_for_answer(partial(self._system.ask, request), ANSWER_SECONDS)
