"""PADRES's balancer on a set-up: the overlay's shipped cores, simulated message by message."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.experiment.balancers.utilisation import NOWHERE, Places
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
        self._places: Places = np.full(len(self._numbers), NOWHERE, np.int16)

    def run(self, tell: Tell) -> Iterator[tuple[Places, MessageRow]]:
        """Who is where every time a row is due, and the messages since the row before."""
        seen: list[Places] = []

        def look(doing: str, part: float) -> None:
            seen.append(self._look())
            tell(doing, part)

        rows = self._run.run(look).rows
        yield from zip(seen, [row for row in rows if isinstance(row, MessageRow)], strict=True)

    def _look(self) -> Places:
        """Whoever is on two edges, in the midst of a migration, is where it was."""
        now = np.full_like(self._places, NOWHERE)
        for place, edge in enumerate(self._edges):
            held = [self._numbers[each.subscriber] for each in self._run.system.edges[edge].core.subscriptions.all]
            stay = self._places[held] == place
            now[held] = np.where((now[held] == NOWHERE) | stay, place, now[held])
        self._places = now
        return now.copy()
