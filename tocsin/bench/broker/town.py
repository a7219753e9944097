"""Two brokers and the people they serve, for the measurement of moving."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from tocsin.bench.broker.contestant import Cores
from tocsin.bench.broker.feeder import BES, CHANNEL, Feeder
from tocsin.bench.broker.network import TOKEN, BenchNetwork, network
from tocsin.bench.broker.payloads import payload
from tocsin.bench.broker.registration import register
from tocsin.bench.broker.sockets import Sockets
from tocsin.bench.broker.traveller import Traveller, await_subscriptions
from tocsin.errors import UnavailableError

PERIOD: Final = 0.1
_EACH: Final = 5
_KINDS: Final = 50
_PATIENCE: Final = 120.0


class Town:
    """Everybody is on one broker at first. Each execution finds something for one subscription of everybody."""

    def __init__(self, sockets: Sockets, feeder: Feeder, net: BenchNetwork, people: list[Traveller]) -> None:
        self._sockets, self._feeder, self._network = sockets, feeder, net
        self.people = people
        self._executions = self._said_before = 0

    def serve(self, seconds: float) -> None:
        """Executes on and on."""
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self._execute()

    def start(self) -> None:
        """Counts from now on, when all that was found is delivered."""
        self._sockets.attend(2 * PERIOD)
        self._executions, self._said_before = 0, self._network.coordination_bytes
        for one in self.people:
            one.start()

    def move(self) -> float:
        """Has everybody moved; how long it took until the last has arrived."""
        began = time.perf_counter()
        self._network.put("/brokers/north/draining", {"on": True})
        while any(not one.moves for one in self.people):
            self._execute()
            if time.perf_counter() - began > _PATIENCE:
                moved = sum(one.moves > 0 for one in self.people)
                raise UnavailableError(f"only {moved} of {len(self.people)} moved within {_PATIENCE:.0f} seconds")
        return time.perf_counter() - began

    def wrong(self) -> int:
        """How many did not get exactly what was executed since the start, once all is delivered."""
        self._sockets.attend(1.0)
        return sum(one.count != self._executions for one in self.people)

    def overhead(self) -> int:
        """All bytes but those that delivered something new: of connections, logins and coordination."""
        return sum(one.overhead for one in self.people) + self._network.coordination_bytes - self._said_before

    def _execute(self) -> None:
        began = time.perf_counter()
        self._executions += 1
        self._feeder.execute(range(BES + self._executions % _EACH, BES + _KINDS, _EACH))
        self._sockets.attend(max(began + PERIOD - time.perf_counter(), 0.001))


@contextmanager
def town(directory: Path, cores: Cores, subscribers: int, say: Callable[[str], None]) -> Iterator[Town]:
    """Starts everything, and has everybody subscribe on the first broker."""
    names = ["north", "south"]
    with ExitStack() as stack:
        sockets = stack.enter_context(closing(Sockets()))
        feeder = Feeder(sockets, payload)
        running = network(directory, feeder.url, names, cores, lambda: sockets.attend(0.05), relayed=True)
        net = stack.enter_context(running)
        net.put("/balancing", {"on": False})
        net.put("/brokers/south/draining", {"on": True})
        say(f"registering {subscribers:,} subscribers")
        places = register(sockets, net.coordinator, TOKEN, [f"s{number}" for number in range(subscribers)])
        people = [
            Traveller(sockets, place.url, place.token, CHANNEL, _kinds_of(number))
            for number, place in enumerate(places)
        ]
        await_subscriptions(sockets, people)
        net.put("/brokers/south/draining", {"on": False})
        yield Town(sockets, feeder, net, people)


def _kinds_of(number: int) -> list[dict[str, int]]:
    """Five kinds that follow each other, so that one of every five executions in a row is for one of them."""
    return [{"kind": (number * _EACH + one) % _KINDS} for one in range(_EACH)]
