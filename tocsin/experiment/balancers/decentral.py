"""PADRES's balancer on a set-up: the overlay's shipped cores, simulated message by message."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.experiment.balancers.utilisation import NOWHERE, EdgeAssignment
from tocsin.experiment.padres.rows import MessageRow
from tocsin.experiment.padres.run import QuoteRun, RunSettings
from tocsin.experiment.padres.scenario import QuoteScenario
from tocsin.experiment.study import Tell


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
