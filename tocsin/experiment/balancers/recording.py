"""Rows of a run, for any balancer by the same ruler: from who is where every ten seconds, and what is published."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.balance.bounds import lower_bound
from tocsin.balance.model.problem import Problem
from tocsin.experiment.balancers.matches import MatchedPublications
from tocsin.experiment.balancers.rows import BalancingRow, BoundRow, BrokerRow
from tocsin.experiment.balancers.utilisation import NOWHERE, EdgeAssignment, Utilisation, utilise
from tocsin.experiment.padres.run import EVERY, matching_seconds
from tocsin.experiment.padres.scenario import QuoteScenario
from tocsin.experiment.table import Row

SPAN = 300.0
"""Seconds at the end of each half over which utilisations are averaged, or half of those since the last join."""


class LoadRecorder:
    """Follows one balancer on one set-up. ``part`` says how much is behind."""

    def __init__(self, setup: str, balancer: str, scenario: QuoteScenario, matched: MatchedPublications) -> None:
        self._setup, self._balancer, self._scenario, self._matched = setup, balancer, scenario, matched
        self._edges = scenario.edges
        names = [site.name for site in self._edges]
        self._homes = np.array([names.index(each.broker) for each in scenario.subscribers], np.int16)
        self._before: EdgeAssignment = np.full(len(self._homes), NOWHERE, np.int16)
        self._seconds = 0.0

    @property
    def part(self) -> float:
        """How much of the run is behind."""
        return self._seconds / self._scenario.seconds

    def broker_rows(self, assignment: EdgeAssignment) -> tuple[Utilisation, list[BrokerRow]]:
        """What the brokers had to do since the last time, if everybody was where they are now."""
        self._seconds += EVERY
        published = self._matched.between(self._seconds - EVERY, self._seconds)
        machines = [site.machine for site in self._edges]
        done = utilise(published, EVERY, assignment, machines, matching_seconds(self._scenario))
        return done, [
            BrokerRow(
                setup=self._setup,
                balancer=self._balancer,
                seconds=self._seconds,
                broker=site.name,
                subscribers=int(done.subscribers[at]),
                received=int(done.received[at]),
                delivered=int(done.delivered[at]),
                traffic=float(done.traffic[at]),
                matching=float(done.matching[at]),
            )
            for at, site in enumerate(self._edges)
        ]

    def balancing_row(self, assignment: EdgeAssignment, messages: float, own: float) -> BalancingRow:
        """What the balancer did."""
        row = BalancingRow(
            setup=self._setup,
            balancer=self._balancer,
            seconds=self._seconds,
            moves=self.count_moves(assignment),
            messages=messages,
            own=own,
        )
        self._before = assignment
        return row

    def count_moves(self, assignment: EdgeAssignment) -> int:
        """How many are elsewhere than they were, or than they joined since."""
        before = np.where(self._before == NOWHERE, self._homes, self._before)
        return int(np.count_nonzero((assignment != before) & (assignment != NOWHERE)))

    def count_joins(self, assignment: EdgeAssignment) -> int:
        """How many have joined."""
        return int(np.count_nonzero((assignment != NOWHERE) & (self._before == NOWHERE)))

    def count_publications(self) -> int:
        """How many were published since the last time."""
        return len(self._matched.between(self._seconds - EVERY, self._seconds))


def bound_rows(setup: str, scenario: QuoteScenario, matched: MatchedPublications) -> Iterator[Row]:
    """Of both halves: until more is published, and until the end."""
    doubled = scenario.doubled_at
    for begins, settles, until in ((0.0, scenario.joined_at, doubled), (doubled, doubled, scenario.seconds)):
        span = min(SPAN, EVERY * ((until - settles) / 2 // EVERY))
        capacity = np.array([site.machine.bandwidth * span for site in scenario.edges])
        workload = matched.between(until - span, until).workload(len(scenario.subscribers), capacity)
        anywhere = np.zeros(workload.subscribers, np.int32)
        yield BoundRow(
            setup=setup,
            begins=begins,
            settles=settles,
            since=until - span,
            until=until,
            signatures=workload.subscriptions,
            bound=lower_bound(Problem(workload, anywhere)),
        )
