"""The experiment ``balancers``: PADRES's balancer and the coordinator's on the same set-ups, by the same ruler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tocsin.experiment.balancers.claims import verdicts
from tocsin.experiment.balancers.matches import MatchedPublications
from tocsin.experiment.balancers.names import (
    BALANCERS,
    BOUND,
    MATCHING,
    NONE,
    PADRES,
    SETUPS,
    UNEQUAL,
    cell_of,
    parts_of,
)
from tocsin.experiment.balancers.recording import LoadRecorder, bound_rows
from tocsin.experiment.balancers.rows import BalancingRow, BoundRow, BrokerRow
from tocsin.experiment.balancers.sections import sections
from tocsin.experiment.balancers.systems import MESSAGES_OF_A_MOVE, CoordinatedSystem, DecentralSystem, report_messages
from tocsin.experiment.padres.scenario import LOCAL, QuoteScenario, ScenarioSize, edges_scenario, local_scenario
from tocsin.experiment.padres.settings import PadresSettings
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict

EDGES: Final = 4

_SMALL: Final = ScenarioSize(subscribers=250, joining_until=110.0, doubled_at=300.0, seconds=400.0)
_JOIN_MESSAGES: Final = 2
"""A subscription, and the answer."""


@dataclass(frozen=True)
class TwoBalancers(PadresSettings):
    """Section 6.2 of the PADRES paper, balanced in two ways."""

    name = "balancers"
    title = "Two balancers on the same set-up"
    about = (
        "The set-up of the PADRES paper's section 6.2: 40 publishers of stock quotes, and 2,000 subscribers who all "
        "join the same one of four edges within 1,000 seconds; at 3,000 seconds half of the publishers begin to send "
        "twice as much. Once with edges whose processors, memory and bandwidth are as 1 to 2 to 4 to 10, where "
        "everybody joins the weakest, and once with equal ones.\n\n"
        "PADRES's balancer has no coordinator: it is the overlay's, simulated message by message, and brokers take "
        "their time. The coordinator's is asked as it is. To it, all publications that match the same subscribers are "
        "one BE subscription, which these hold, and a broker's load is what comes in and goes out over its bandwidth. "
        "Once a subscriber weighs no more than that, as in Tocsin, where the data cluster matches; once it also weighs "
        "what matching against its filter takes, as it does on PADRES's brokers.\n\n"
        "Both are judged by the same ruler. Who is where is noted every ten seconds, and what each broker has to do is "
        "counted from that and from what is published: its traffic over its bandwidth, and the part of its processor's "
        "time that matching takes. No assignment whatever has a lower highest traffic than the bound. The claims are "
        "ours: neither paper knows the other's balancer."
    )
    tables = (BrokerRow, BalancingRow, BoundRow)
    full, small = LOCAL, _SMALL

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on."""
        return {**self.describe(), "messages of a move": MESSAGES_OF_A_MOVE}

    def cells(self) -> list[str]:
        """Each balancer on each set-up, and the bound."""
        return [cell_of(setup, what) for setup in SETUPS for what in (BOUND, *BALANCERS)]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One balancer on one set-up, or what bounds them all."""
        setup, what = parts_of(cell)
        scenario = self._scenario(setup)
        tell("matching", 0.0)
        matched = MatchedPublications.of(scenario)
        if what == BOUND:
            yield from bound_rows(setup, scenario, matched)
            return
        recorder = LoadRecorder(setup, what, scenario, matched)
        if what == PADRES:
            yield from _decentral_rows(recorder, DecentralSystem(scenario, self.seed), tell)
        else:
            system = CoordinatedSystem(scenario, matched, matching=what == MATCHING, balancing=what != NONE)
            yield from _coordinated_rows(recorder, system, 0.0 if what == NONE else report_messages(EDGES), tell)

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(data)

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return verdicts(data)

    def _scenario(self, setup: str) -> QuoteScenario:
        if setup == UNEQUAL:
            return local_scenario(self.seed, self.stock_quotes, self.size)
        return edges_scenario(self.seed, self.stock_quotes, EDGES, self.size)


def _decentral_rows(recorder: LoadRecorder, system: DecentralSystem, tell: Tell) -> Iterator[Row]:
    for assignment, messages in system.run(tell):
        _, rows = recorder.broker_rows(assignment)
        yield from rows
        yield recorder.balancing_row(assignment, messages.messages, messages.balancing)


def _coordinated_rows(recorder: LoadRecorder, system: CoordinatedSystem, reports: float, tell: Tell) -> Iterator[Row]:
    """Messages are counted: publications to the head, to brokers and to subscribers, joins, and the balancer's."""
    for assignment in system.run():
        done, rows = recorder.broker_rows(assignment)
        yield from rows
        own = reports + MESSAGES_OF_A_MOVE * recorder.count_moves(assignment)
        published = recorder.count_publications() + int(done.received.sum() + done.delivered.sum())
        yield recorder.balancing_row(
            assignment, published + _JOIN_MESSAGES * recorder.count_joins(assignment) + own, own
        )
        tell("", recorder.part)
