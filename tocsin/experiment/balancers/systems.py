"""The two balancers on a set-up, look by look: the coordinator's, and that of PADRES.

Everybody joins the broker that the set-up says. The coordinator's planners and controller are as they are: the
controller sees what the coordinator would measure, which is what was published in the last minute, and what it decides
is carried out until its next look, which leaves it five seconds. PADRES's is the overlay's shipped cores, simulated
message by message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

import numpy as np

from tocsin.balance.control.controller import Controller
from tocsin.balance.control.observation import Observation
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.plan import Moves
from tocsin.balance.model.workload import Workload
from tocsin.balance.policies import planner
from tocsin.broker.limits import BrokerLimits
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.experiment.balancers.matches import MatchedPublications
from tocsin.experiment.balancers.utilisation import NOWHERE, EdgeAssignment
from tocsin.experiment.padres.rows import MessageRow
from tocsin.experiment.padres.run import EVERY, QuoteRun, RunSettings, matching_seconds
from tocsin.experiment.padres.scenario import QuoteScenario
from tocsin.experiment.study import Tell
from tocsin.settings.sections import RatesSettings

INTERVAL: Final = CoordinatorLimits().interval
WINDOW: Final = RatesSettings().window_seconds
MESSAGES_OF_A_MOVE: Final = 13
"""prepare, prepared, handover, moved, login, welcome, arrived, release and released, and to the data cluster attach and
detach with their answers, for what the new broker did not hold and the old one holds no more."""


def report_messages(brokers: int) -> float:
    """How many load reports so many brokers send in the time between two rows."""
    return brokers * EVERY / BrokerLimits().report_seconds


class CoordinatedSystem:
    """Who is where, as the coordinator has it.

    Args:
        matching: whether a subscriber also weighs what it takes to match publications against its filter. Where the
            data cluster matches, as it does for the coordinator's brokers, it does not.
        balancing: whether anybody is moved.
    """

    def __init__(
        self, scenario: QuoteScenario, matched: MatchedPublications, matching: bool = False, balancing: bool = True
    ) -> None:
        self._scenario, self._matched = scenario, matched
        self._matching, self._balancing = matching, balancing
        self._edges = [site.machine for site in scenario.edges]
        names = [site.name for site in scenario.edges]
        self._homes = np.array([names.index(each.broker) for each in scenario.subscribers], np.int16)
        self._joins = [each.at for each in scenario.subscribers]
        self._controller = Controller(planner("migrate"), planner("shuffle"), Thresholds.product())
        self._assignment: EdgeAssignment = np.full(len(self._homes), NOWHERE, np.int16)
        self._pending: Moves | None = None

    def run(self) -> Iterator[EdgeAssignment]:
        """Who is where, every time a row is due."""
        looks = round(EVERY / INTERVAL)
        for look in range(1, int(self._scenario.seconds / INTERVAL) + 1):
            self._look(look * INTERVAL)
            if look % looks == 0:
                yield self._assignment.copy()

    def _look(self, now: float) -> None:
        joined = bisect_right(self._joins, now)
        new = np.arange(len(self._assignment)) < joined
        new &= self._assignment == NOWHERE
        self._assignment[new] = self._homes[new]
        if self._pending is not None:
            self._assignment[self._pending.subscriber] = self._pending.destination
            self._controller.carried_out(now, self._pending)
            self._pending = None
        if joined and self._balancing:
            self._pending = self._decide(now, joined)

    def _decide(self, now: float, joined: int) -> Moves | None:
        live = LiveWorkload.of(self._observe(now, joined), self._assignment[:joined].astype(np.int32))
        reported = {int(broker): now for broker in live.brokers}
        return self._controller.decide(now, Observation.of(live, reported)).moves

    def _observe(self, now: float, joined: int) -> Workload:
        span = min(WINDOW, now)
        recent = self._matched.between(now - span, now)
        capacity = np.array([machine.bandwidth * span for machine in self._edges])
        return recent.workload(joined, capacity, self._own(len(recent)) if self._matching else 0)

    def _own(self, publications: int) -> int:
        """What matching against one filter weighs, in bytes: half of it, as what is held alone comes in and goes out.

        The part of a processor's time that it takes is the part of the bandwidth that so many bytes take.
        """
        bandwidth = sum(machine.bandwidth for machine in self._edges)
        megahertz = sum(machine.megahertz for machine in self._edges)
        return round(publications * matching_seconds(self._scenario) * bandwidth / megahertz / 2)


class DecentralSystem:
    """Who is where, as the edges have it."""

    def __init__(self, scenario: QuoteScenario, seed: int) -> None:
        self._run = QuoteRun("PADRES", scenario, seed, RunSettings())
        self._edges = [site.name for site in scenario.edges]
        self._numbers = {each.name: number for number, each in enumerate(scenario.subscribers)}
        self._assignment: EdgeAssignment = np.full(len(self._numbers), NOWHERE, np.int16)

    def run(self, tell: Tell) -> Iterator[tuple[EdgeAssignment, MessageRow]]:
        """Who is where every time a row is due, and the messages since the row before."""
        seen: list[EdgeAssignment] = []

        def look(doing: str, part: float) -> None:
            seen.append(self._look())
            tell(doing, part)

        rows = self._run.run(look).rows
        yield from zip(seen, [row for row in rows if isinstance(row, MessageRow)], strict=True)

    def _look(self) -> EdgeAssignment:
        """Whoever is on two edges, in the midst of a migration, is where it was."""
        now = np.full_like(self._assignment, NOWHERE)
        for number, edge in enumerate(self._edges):
            held = [self._numbers[each.subscriber] for each in self._run.system.edges[edge].core.subscriptions.all]
            stay = self._assignment[held] == number
            now[held] = np.where((now[held] == NOWHERE) | stay, number, now[held])
        self._assignment = now
        return now.copy()
