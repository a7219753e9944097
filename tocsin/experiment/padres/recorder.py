"""What happens in a run, as rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Final, get_args

from tocsin.experiment.padres.rows import EdgeRow, EstimateRow, MessageRow
from tocsin.experiment.padres.scenario import QuoteScenario
from tocsin.experiment.table import Row
from tocsin.overlay import dialogue, messages
from tocsin.overlay.dialogue import Note
from tocsin.overlay.mediation import Estimate
from tocsin.simulate.overlay.brokers import EdgeHost
from tocsin.simulate.overlay.system import OverlaySystem

OFFLOADING: Final = "offloading broker"
ACCEPTING: Final = "load-accepting broker"

SETTLED_SECONDS: Final = 60.0
"""Over how long the input ratio after a session is counted, unless there is another session before."""
LEAST_SECONDS: Final = 15.0
"""Over a shorter time it is not."""

_BALANCING: Final = (
    messages.LocalLoad,
    messages.ClusterLoad,
    messages.ClusterView,
    *get_args(messages.SessionBody),
    dialogue.Move,
    dialogue.Settle,
    dialogue.Unsubscribe,
)
_SUBSCRIBING: Final = (messages.Change, messages.Fetch, messages.Found, dialogue.Began, dialogue.Passed)
"""What a subscription brings with it, of one who joins or of one who migrates."""


@dataclass
class _Outcome:
    """A broker after a session, whose input is being counted."""

    estimate: Estimate
    broker: str
    offloader: str
    ratio: float
    since: float
    taken: int


class Recorder:
    """Looks at a system, and changes nothing. ``rows`` are all that were written of the run."""

    def __init__(self, run: str, system: OverlaySystem, scenario: QuoteScenario, begun: float) -> None:
        self.rows: list[Row] = []
        self._run = run
        self._system, self._scenario, self._begun = system, scenario, begun
        self._published: dict[str, list[float]] = {publisher.name: [] for publisher in scenario.publishers}
        self._deliveries: Counter[str] = Counter()
        self._lateness: defaultdict[str, float] = defaultdict(float)
        self._messages: Counter[type] = Counter()
        self._joins = self._migrations = 0
        self._sessions = self._moved = 0
        self._seen: dict[str, Estimate | None] = {}
        self._open: dict[str, Estimate] = {}
        self._outcomes: dict[str, _Outcome] = {}
        system.network.watch = self._count
        for edge in system.edges.values():
            edge.sent = self._sent

    def published(self, publisher: str) -> None:
        """A publisher publishes its next now."""
        self._published[publisher].append(self._system.clock.now)

    def write(self, seconds: float) -> None:
        """Rows of what has been since the last ones."""
        self.rows += [self._edge_row(seconds, edge) for edge in self._system.edges.values()]
        self.rows.append(self._message_row(seconds))
        self._deliveries.clear()
        self._lateness.clear()
        self._messages.clear()
        self._joins = self._migrations = self._sessions = self._moved = 0

    def watch(self) -> None:
        """Follows sessions; to be called every second."""
        for name, edge in self._system.edges.items():
            estimate = edge.core.mediation.estimate
            if estimate and estimate is not self._seen.get(name):
                self._seen[name] = self._open[name] = estimate
                self._sessions += 1
                self._moved += estimate.subscribers
            if edge.core.surroundings.busy:
                self._conclude(name)
        for name, estimate in list(self._open.items()):
            if not self._system.edges[name].core.surroundings.busy:
                del self._open[name]
                self._begin(estimate, name, name, estimate.own.input_ratio)
                self._begin(estimate, estimate.acceptor, name, estimate.other.input_ratio)
        for name, outcome in list(self._outcomes.items()):
            if self._now - outcome.since >= SETTLED_SECONDS:
                self._conclude(name)

    @property
    def _now(self) -> float:
        return self._system.clock.now

    def _sent(self, broker: str, note: Note, subscribers: int, seconds: float, leaves: float) -> None:
        """Those to whom a publication is sent get it one after the other, the last of them when all of it has left."""
        last = leaves - self._published[note.publisher][note.sequence - 1]
        self._deliveries[broker] += subscribers
        self._lateness[broker] += subscribers * last - seconds * (subscribers - 1) / 2

    def _count(self, message: Any, connections: int) -> None:
        kind = type(message.body) if isinstance(message, messages.Control) else type(message)
        self._messages[kind] += connections
        if kind is dialogue.Subscribe:
            migrates = bool(message.session)
            self._migrations, self._joins = self._migrations + migrates, self._joins + (not migrates)

    def _begin(self, estimate: Estimate, broker: str, offloader: str, ratio: float) -> None:
        service = self._system.edges[broker].service
        assert service, "brokers take their time"
        self._outcomes[broker] = _Outcome(estimate, broker, offloader, ratio, self._now, service.taken)

    def _conclude(self, broker: str) -> None:
        """A broker has been counted for long enough, or is in another session."""
        outcome = self._outcomes.pop(broker, None)
        if outcome is None or self._now - outcome.since < LEAST_SECONDS:
            return
        service = self._system.edges[broker].service
        assert service, "brokers take their time"
        rate = (service.taken - outcome.taken) / (self._now - outcome.since)
        self.rows.append(
            EstimateRow(
                run=self._run,
                seconds=self._now - self._begun,
                broker=broker,
                role=OFFLOADING if broker == outcome.offloader else ACCEPTING,
                offloader=outcome.offloader,
                algorithm=outcome.estimate.action.algorithm.value,
                subscribers=outcome.estimate.subscribers,
                joining=outcome.since - self._begun <= self._scenario.joined_at,
                estimated=outcome.ratio,
                actual=rate * service.matching_seconds,
            )
        )

    def _edge_row(self, seconds: float, edge: EdgeHost) -> EdgeRow:
        load, service, name = edge.core.surroundings.load(), edge.service, edge.host
        assert load, "brokers have been measured"
        assert service, "brokers take their time"
        deliveries = self._deliveries[name]
        return EdgeRow(
            run=self._run,
            seconds=seconds,
            broker=name,
            cluster=self._system.clusters[name],
            input=load.input_ratio,
            output=load.output_ratio,
            delay=load.matching_seconds,
            cpu=load.cpu,
            memory=load.memory / load.memory_bytes,
            state=edge.core.surroundings.state().value,
            subscribers=load.subscriptions,
            waiting=service.waiting,
            deliveries=deliveries,
            delivery=self._lateness[name] / deliveries if deliveries else 0.0,
        )

    def _message_row(self, seconds: float) -> MessageRow:
        counted = self._messages
        share = self._migrations / (self._migrations + self._joins) if self._migrations else 0.0
        own = sum(counted[kind] for kind in _BALANCING) + self._migrations
        pairs = {
            "+".join(sorted((name, head.core.alliance.other)))
            for name, head in self._system.heads.items()
            if head.core.alliance.other
        }
        return MessageRow(
            run=self._run,
            seconds=seconds,
            messages=sum(counted.values()),
            balancing=own + share * sum(counted[kind] for kind in _SUBSCRIBING),
            sessions=self._sessions,
            moved=self._moved,
            allied=" ".join(sorted(pairs)),
        )
