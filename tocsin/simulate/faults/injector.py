"""What goes wrong: each kind of trouble is one method, and happens to whom chance chooses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tocsin.client.core import events as client_events
from tocsin.client.core.actions import ConnectionState
from tocsin.coordinator.events import ApplyPlan, Balance, Drain, RemoveBroker
from tocsin.model import control
from tocsin.model.terms import Terms
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.clienthost import ClientHost
from tocsin.simulate.coordinatorhost import HOST as COORDINATOR
from tocsin.simulate.datahost import HOST as DATA
from tocsin.simulate.faults.weather import conditions
from tocsin.simulate.process import CoreProcess
from tocsin.simulate.system import GROUP, System

VALUES = 4
CHANNELS = ("c", "d")
_SHORTLY = (0.0, 0.005, 0.02, 0.1, 0.5)


class FaultInjector:
    """Makes trouble for a system, until it is ``over``. ``moves`` counts subscribers who set out for another broker."""

    def __init__(self, system: System, random: Random) -> None:
        self._system, self._random = system, random
        self._nasty = random.random()
        self.over = False
        self._copy: dict[str, Any] | None = None
        self.count = self.moves = 0
        self._kinds = self._weights()

    def happen(self) -> None:
        """Something goes wrong, or is repaired, or somebody wants something."""
        self.count += 1
        self._random.choices(list(self._kinds), list(self._kinds.values()))[0]()

    def on_the_way(self, person: ClientHost) -> None:
        """A subscriber has set out for another broker, which is when things had better not break."""
        self.moves += 1
        if self.over or self._random.random() > self._nasty:
            return
        hits: list[Callable[[], None]] = [
            lambda: self._break(person),
            lambda: self._fuse(person),
            lambda: self._system.crash_person(person.host),
            lambda: self._let_go(person),
            self._fuse_broker,
            self._crash_broker,
            self._fuse_coordinator,
            self._crash_coordinator,
        ]
        hit = self._random.choice(hits)
        self._system.clock.after(self._random.choice(_SHORTLY), lambda: None if self.over else hit())

    def _weights(self) -> dict[Callable[[], None], int]:
        return {
            self._crash_broker: 3,
            self._start_broker: 5,
            self._fuse_broker: 2,
            self._crash_coordinator: 1,
            self._start_coordinator: 4,
            self._fuse_coordinator: 2,
            self._crash_data: 1,
            self._start_data: 4,
            self._copy_data: 2,
            self._restore_data: 1,
            self._lose_data: 1,
            self._drop_channel: 1,
            self._change_terms: 1,
            self._fail_channel: 1,
            self._fail_storage: 2,
            self._repair_storage: 2,
            self._slow_broker: 3,
            self._ask_strangely: 1,
            self._break_uplink: 3,
            self._break_person: 4,
            self._crash_person: 2,
            self._stop_person: 2,
            self._start_person: 6,
            self._slow_person: 1,
            self._sever: 3,
            self._mend: 5,
            self._change_weather: 1,
            self._drain: 3,
            self._undrain: 3,
            self._plan: 3,
            self._balance: 1,
            self._subscribe: 3,
            self._unsubscribe: 2,
            self._leave: 2,
            self._register: 3,
            self._remove_broker: 3,
        }

    def _person(self) -> ClientHost:
        """One who is staying: there is always one left."""
        people = self._system.people
        return self._random.choice([person for name, person in people.items() if name not in self._system.leaving])

    def _broker(self) -> BrokerHost:
        return self._random.choice(list(self._system.brokers.values()))

    def _crash_broker(self) -> None:
        broker = self._broker()
        if broker.alive:
            self._system.remark(f"broker {broker.host} crashes")
            broker.crash()

    def _start_broker(self) -> None:
        self._system.start_broker(self._broker().host)

    def _fuse_broker(self) -> None:
        self._fuse(self._broker())

    def _crash_coordinator(self) -> None:
        if self._system.coordinator.alive:
            self._system.remark("the coordinator crashes")
            self._system.coordinator.crash()

    def _start_coordinator(self) -> None:
        self._system.start_coordinator()

    def _fuse_coordinator(self) -> None:
        self._fuse(self._system.coordinator)

    def _fuse(self, process: CoreProcess) -> None:
        process.fuse = self._random.randrange(12)
        self._system.remark(f"{process.host} is to crash after {process.fuse} actions")

    def _crash_data(self) -> None:
        if self._system.data.alive:
            self._system.remark("the data cluster crashes")
            self._system.data.crash()

    def _start_data(self) -> None:
        self._system.start_data()

    def _copy_data(self) -> None:
        self._copy = self._system.cluster.copy()

    def _restore_data(self) -> None:
        if self._copy is not None:
            self._system.restore(self._copy)
            self._shortly(self._system.start_data)

    def _lose_data(self) -> None:
        """Nothing is left, and some time after the start somebody creates the channels again."""
        self._system.restore(None)
        self._shortly(self._system.start_data)
        self._shortly(self._create_channels)

    def _drop_channel(self) -> None:
        self._system.drop(self._random.choice(CHANNELS))
        self._shortly(self._create_channels)

    def _change_terms(self) -> None:
        """A channel is for everybody, or for a group in which everybody is."""
        terms = self._random.choice([Terms(), Terms(groups=(GROUP,))])
        self._system.change(self._random.choice(CHANNELS), terms)

    def _fail_channel(self) -> None:
        self._system.data.fail(self._random.choice(CHANNELS))

    def _fail_storage(self) -> None:
        self._system.remark("the storage refuses")
        self._system.data.refusing = self._random.choice([0.2, 0.9])

    def _repair_storage(self) -> None:
        self._system.data.refusing = 0.0

    def _slow_broker(self) -> None:
        """A broker reads slowly what the data cluster tells it."""
        broker, seconds = self._broker().host, self._random.choice([0.0, 0.5, 3.0, 6.0])
        self._system.remark(f"{broker} takes up to {seconds} s to read a message of the data cluster")
        self._system.data.slowness[broker] = seconds

    def _ask_strangely(self) -> None:
        """What brokers never do, and others may."""
        strange: list[control.Request | bytes] = [control.Ping(0), b'{"type":"dance","id":0}', b"no JSON"]
        self._broker().ask_data(self._random.choice(strange))

    def _create_channels(self) -> None:
        for channel in CHANNELS:
            self._system.create(channel)

    def _shortly(self, call: Callable[[], None]) -> None:
        self._system.clock.after(self._random.choice([0.0, 0.1, 1.0, 6.0]), call)

    def _break_uplink(self) -> None:
        broker, other = self._broker().host, self._random.choice([DATA, COORDINATOR])
        self._system.remark(f"the link of {broker} to {other} breaks")
        for link in self._system.network.links(broker, other):
            link.sever()

    def _break_person(self) -> None:
        self._break(self._person())

    def _break(self, person: ClientHost) -> None:
        self._system.remark(f"the connections of {person.host} break")
        for link in self._system.network.links(person.host):
            link.sever()

    def _crash_person(self) -> None:
        self._system.crash_person(self._person().host)

    def _stop_person(self) -> None:
        person = self._person()
        self._system.remark(f"{person.host} logs out")
        person.tell(client_events.Stop())

    def _start_person(self) -> None:
        person = self._system.join(self._person().host)
        if person.state is ConnectionState.STOPPED:
            person.start()

    def _slow_person(self) -> None:
        self._person().slowness = self._random.choice([0.0, 0.3, 3.0])

    def _sever(self) -> None:
        """Two hosts that talk to each other cannot any more."""
        person, broker = self._person().host, self._broker().host
        pairs = [(person, broker), (person, COORDINATOR), (broker, COORDINATOR), (broker, DATA)]
        host, other = self._random.choice(pairs)
        self._system.remark(f"nothing gets through between {host} and {other}")
        self._system.network.sever(host, other)

    def _mend(self) -> None:
        self._system.remark("all gets through everywhere")
        self._system.network.mend_all()

    def _change_weather(self) -> None:
        self._system.network.conditions = conditions(self._random)

    def _drain(self) -> None:
        self._system.ask(Drain(0, self._broker().host))

    def _undrain(self) -> None:
        self._system.ask(Drain(0, self._broker().host, False))

    def _plan(self) -> None:
        self._system.ask(ApplyPlan(0))

    def _balance(self) -> None:
        self._system.ask(Balance(0, self._random.random() < 0.8))

    def _subscribe(self) -> None:
        person, channel = self._person(), self._random.choice(CHANNELS)
        if person.alive and channel not in self._system.cluster.absent:
            live, value = self._random.random() < 0.1, self._random.randrange(VALUES)
            self._system.subscribe(person.host, self._random.choice([channel, channel.upper()]), live, v=value)

    def _unsubscribe(self) -> None:
        person = self._person()
        wanted = list(self._system.desired[person.host])
        if person.alive and wanted:
            self._system.unsubscribe(person.host, self._random.choice(wanted))

    def _leave(self) -> None:
        self._let_go(self._person())

    def _let_go(self, person: ClientHost) -> None:
        """Somebody leaves for good, unless it is the last."""
        if person.host in self._system.people and len(self._system.people) - len(self._system.leaving) > 1:
            self._system.leave(person.host, self._random.random() < 0.5)

    def _register(self) -> None:
        """Somebody else comes under a name that somebody had, and wants the same as they."""
        if self._system.departed:
            self._system.register(self._random.choice(list(self._system.departed)))

    def _remove_broker(self) -> None:
        """An operator removes a broker that is drained, or that was found to be dead; one that is needed stays."""
        broker = self._broker().host
        if self._random.random() < 0.5:
            self._system.ask(Drain(0, broker))
        self._shortly(lambda: None if self.over else self._system.ask(RemoveBroker(0, broker)))
