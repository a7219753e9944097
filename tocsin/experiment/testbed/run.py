"""One run of the test bed, from its first process to its last."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tocsin.balance.control.triggers import Stage
from tocsin.client.operator import Operator
from tocsin.coordinator.answers import BrokerSummary, NetworkStatus
from tocsin.crowd.crowd import Crowd, crowd
from tocsin.crowd.delays import within
from tocsin.crowd.messages import Compared, CrowdFigures, CrowdTrouble, Heard, PersonMoved
from tocsin.crowd.observation import count_executions, find_owed, measure_strain
from tocsin.crowd.plan import CrowdPlan
from tocsin.crowd.shortfall import Strain, shortfall
from tocsin.errors import TocsinError, UnavailableError
from tocsin.experiment.series.rows import LoadRow, moment
from tocsin.experiment.study import Tell
from tocsin.experiment.table import Row
from tocsin.experiment.testbed.bed import Bed
from tocsin.experiment.testbed.rows import RunSummary, RunTrouble
from tocsin.local.child import DidNotStartError
from tocsin.local.network import COORDINATOR, DATA, TOKEN, LocalNetwork
from tocsin.local.supervisor import Supervisor
from tocsin.tasks import until_one_ends

SAMPLE_SECONDS: Final = 10.0
"""Of the paper's time, between two looks at the loads."""
SETTLE_SECONDS: Final = 30.0
"""How long what is on its way at the end is waited for."""
_AGAIN_SECONDS: Final = 0.5


@dataclass
class TestbedRun:
    """A run of the real system. Its rows are complete when :meth:`carry_out` has returned.

    What can go wrong: a process does not start, or dies again and again (DidNotStartError); the data cluster refuses
    the application (UnavailableError). What subscribers meet is counted and does not end the run.
    """

    bed: Bed
    people: int
    seconds: float
    seed: int
    tell: Tell
    trace: str | None = None
    roads: str | None = None
    rows: list[Row] = field(default_factory=list)
    _troubles: list[str] = field(default_factory=list)
    _figures: CrowdFigures = field(default_factory=CrowdFigures)
    _compared: Compared = field(default_factory=Compared)
    _missing: int = 0
    _strain: Strain = field(default_factory=Strain)
    _plans: Mapping[str, int] = field(default_factory=dict)

    def carry_out(self) -> None:
        """Starts everything, runs it, and stops it."""
        with tempfile.TemporaryDirectory(prefix="tocsin-testbed-", ignore_cleanup_errors=True) as directory:
            try:
                asyncio.run(self._live(self.bed.network(Path(directory))))
            except DidNotStartError as error:
                # The log goes with the directory.
                last = "; ".join(error.lines[-3:]) or "nothing"
                raise UnavailableError(f"{error.sentence.partition(';')[0]}; the last it said was: {last}") from None

    async def _live(self, network: LocalNetwork) -> None:
        groups = ([network.data()], [network.coordinator()], network.broker_parts())
        async with Supervisor(*groups, say=self._troubles.append, token=TOKEN) as processes:
            self.tell("starting the processes", 0.0)
            await processes.start(DATA, COORDINATOR)
            await processes.ready(COORDINATOR)
            await processes.start(*network.names)
            await processes.ready(*network.names, DATA)
            await until_one_ends(processes.watch(), self._play(network))
        self._conclude()

    async def _play(self, network: LocalNetwork) -> None:
        plan = CrowdPlan(
            coordinator=network.url(COORDINATOR),
            data=network.url(DATA),
            people=self.people,
            seed=self.seed,
            trace=self.trace,
            roads=self.roads,
            seconds=self.seconds,
            speed=self.bed.speed,
        )
        world = plan.world(datetime.now(UTC))
        logs = network.directory / "log"
        async with (
            Operator(plan.data, plan.coordinator, TOKEN) as operator,
            crowd(plan, len(world.subscribers), logs, self._hear) as people,
        ):
            self.tell("making the application", 0.0)
            await operator.apply(self.bed.application())
            await operator.load("Shelters", world.shelters())
            await operator.balance(self.bed.scheme.thresholds is not None)
            await until_one_ends(people.watch(), self._run(operator, people))

    async def _run(self, operator: Operator, people: Crowd) -> None:
        await people.wait_gathered()
        first, before = await count_executions(operator), await measure_strain(operator)
        await self._watch(operator, people, before, people.begin())
        people.hush()
        self.tell("comparing what came with what was found", 1.0)
        found = await find_owed(operator, first, await count_executions(operator))
        self._compared = await self._settle(found, people)
        self._figures, self._missing = people.figures, people.missing
        if absent := self._compared.absent:
            self._troubles.append(f"{absent} subscribers were not connected at the end, and not asked what they got")

    async def _watch(self, operator: Operator, people: Crowd, before: Strain, began: float) -> None:
        """Looks again and again, until the run is over."""
        at = 0.0
        while at < self.seconds:
            await self._until(began, at)
            with suppress(TocsinError):
                self._sample(at, await operator.status(), people.figures.moved)
                now = (await measure_strain(operator)).after(before)
                self._strain = Strain(max(now.lag, self._strain.lag), now.executions, now.missed)
            at += SAMPLE_SECONDS
        await self._until(began, self.seconds)

    def _hear(self, telling: Heard | PersonMoved | CrowdTrouble) -> None:
        if isinstance(telling, CrowdTrouble):
            self._troubles.append(telling.message)

    def _sample(self, at: float, status: NetworkStatus, moved: int) -> None:
        """One look at the coordinator; what the brokers measured, in the paper's time.

        Moves are those that subscribers saw: the coordinator's count has every first placement in it.
        """
        self._plans = status.plans
        loads = [self._load(at, one) for one in sorted(status.brokers, key=lambda broker: broker.name)]
        now = moment(loads, moved)
        self.rows += [*loads, now]
        self.tell(f"minute {at / 60:.0f}, cov {now.cov:.2f}, {now.moved} moved", at / self.seconds)

    def _load(self, at: float, one: BrokerSummary) -> LoadRow:
        bed, incoming, outgoing = self.bed, one.incoming / self.bed.speed, one.outgoing / self.bed.speed
        return LoadRow(bed.placement, bed.scheme.title, at, one.name, one.subscribers, incoming, outgoing, self.seed)

    async def _until(self, began: float, second: float) -> None:
        await asyncio.sleep(began + second / self.bed.speed - time.monotonic())

    async def _settle(self, found: Mapping[int, frozenset[int]], people: Crowd) -> Compared:
        """Waits until all of what was found has come, though not for ever."""
        compared = await people.compare(found)
        for _ in range(round(SETTLE_SECONDS / _AGAIN_SECONDS)):
            if not compared.lost:
                break
            await asyncio.sleep(_AGAIN_SECONDS)
            compared = await people.compare(found)
        return compared

    def _conclude(self) -> None:
        where = self.bed.placement, self.bed.scheme.title
        self.rows += [RunTrouble(*where, " ".join(text.split()), self.seed) for text in self._troubles]
        self.rows.append(self._summary(self._figures, self._compared))

    def _summary(self, figures: CrowdFigures, compared: Compared) -> RunSummary:
        return RunSummary(
            placement=self.bed.placement,
            scheme=self.bed.scheme.title,
            frontend=figures.held,
            backend=len(compared.subscriptions),
            reports=figures.published.get("reports", 0),
            locations=figures.published.get("locations", 0),
            notes=figures.notifications,
            bytes=figures.bytes,
            lost=compared.lost,
            repeated=figures.duplicates + figures.disordered,
            troubles=len(self._troubles),
            migrations=self._plans.get(Stage.MIGRATE, 0),
            shuffles=self._plans.get(Stage.SHUFFLE, 0),
            seed=self.seed,
            logouts=figures.logouts,
            unsubscribed=figures.unsubscribed,
            again=figures.again,
            median=within(figures.waits, 0.5),
            ninety_fifth=within(figures.waits, 0.95),
            late=within(figures.late, 0.95),
            missing=self._missing,
            small=shortfall(figures, self._strain, self.bed.speed),
        )
