"""One run of the test bed, from its first process to its last."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import httpx

from tocsin.apps.emergency import World
from tocsin.apps.emergency.world import Second
from tocsin.balance.triggers import Stage
from tocsin.coordinator.answers import BrokerStatus, Status
from tocsin.demo.calls import Calls
from tocsin.errors import TocsinError, UnavailableError
from tocsin.experiment.series.rows import Load, moment
from tocsin.experiment.study import Tell
from tocsin.experiment.table import Row
from tocsin.experiment.testbed.bed import Bed
from tocsin.experiment.testbed.ledger import Ledger
from tocsin.experiment.testbed.people import People
from tocsin.experiment.testbed.rows import Summary, Trouble
from tocsin.experiment.testbed.timetable import timetable
from tocsin.local.child import DidNotStartError
from tocsin.local.network import COORDINATOR, DATA, TOKEN, Network
from tocsin.local.supervisor import Supervisor
from tocsin.tasks import until_one_ends

REPORTS: Final = "reports"
SAMPLE_SECONDS: Final = 10.0
"""Of the paper's time, between two looks at the loads."""
SETTLE_SECONDS: Final = 30.0
"""How long what is on its way at the end is waited for."""
_AGAIN_SECONDS: Final = 0.5


@dataclass
class Run:
    """A run of the real system. Its rows are complete when :meth:`carry_out` has returned.

    What can go wrong: a process does not start, or dies again and again (DidNotStartError); the data cluster refuses
    the application (UnavailableError). What subscribers meet is counted and does not end the run.
    """

    bed: Bed
    people: int
    seconds: float
    seed: int
    tell: Tell
    rows: list[Row] = field(default_factory=list)
    _lost: int = 0
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

    async def _live(self, network: Network) -> None:
        ledger = Ledger()
        groups = ([network.data()], [network.coordinator()], network.broker_parts())
        async with Supervisor(*groups, say=ledger.complain, token=TOKEN) as processes:
            self.tell("starting the processes", 0.0)
            await processes.start(DATA, COORDINATOR)
            await processes.ready(COORDINATOR)
            await processes.start(*network.names)
            await processes.ready(*network.names, DATA)
            await until_one_ends(processes.watch(), self._play(network, ledger))
        self._conclude(ledger)

    async def _play(self, network: Network, ledger: Ledger) -> None:
        world = World(self.seed, people=self.people, start=datetime.now(UTC).replace(microsecond=0))
        visits = timetable(world.subscribers, world.interests(), self.seconds, self.seed)
        people = People(network.url(COORDINATOR), visits, ledger)
        async with Calls(network.url(DATA), network.url(COORDINATOR)) as calls, people:
            self.tell("making the application", 0.0)
            await calls.apply(self.bed.application())
            await calls.load("Shelters", world.shelters())
            await calls.balance(self.bed.scheme.thresholds is not None)
            first, began = await calls.executions(), asyncio.get_running_loop().time()
            await until_one_ends(
                self._watch(calls, ledger, began), self._publish(network, world, people, ledger, began)
            )
            self.tell("comparing what came with what was found", 1.0)
            await self._settle(await calls.found(first, await calls.executions()), ledger)

    async def _publish(self, network: Network, world: World, people: People, ledger: Ledger, began: float) -> None:
        """The world, as many of its seconds in each second as the speed is."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=network.url(DATA), headers=headers, timeout=60, trust_env=False) as data:
            for number, seconds in enumerate(self._steps(world)):
                people.walk(seconds[-1].locations)
                if number == 0:
                    people.begin(lambda at: self._until(began, at))
                reports = [report for second in seconds for report in second.reports]
                await asyncio.gather(_report(data, reports, ledger), self._until(began, seconds[-1].at + 1))

    def _steps(self, world: World) -> Iterator[list[Second]]:
        """The seconds of the world that pass in each second, until the end."""
        seconds = islice(world.seconds(), round(self.seconds))
        while step := list(islice(seconds, max(round(self.bed.speed), 1))):
            yield step

    async def _watch(self, calls: Calls, ledger: Ledger, began: float) -> None:
        at = 0.0
        while True:
            with suppress(TocsinError):
                self._sample(at, await calls.status(), ledger.moved)
            at += SAMPLE_SECONDS
            await self._until(began, at)

    def _sample(self, at: float, status: Status, moved: int) -> None:
        """One look at the coordinator; what the brokers measured, in the paper's time.

        Moves are those that subscribers saw: the coordinator's count has every first placement in it.
        """
        self._plans = status.plans
        loads = [self._load(at, one) for one in sorted(status.brokers, key=lambda broker: broker.name)]
        now = moment(loads, moved)
        self.rows += [*loads, now]
        self.tell(f"minute {at / 60:.0f}, cov {now.cov:.2f}, {now.moved} moved", at / self.seconds)

    def _load(self, at: float, one: BrokerStatus) -> Load:
        bed, incoming, outgoing = self.bed, one.incoming / self.bed.speed, one.outgoing / self.bed.speed
        return Load(bed.placement, bed.scheme.title, at, one.name, one.subscribers, incoming, outgoing, self.seed)

    async def _until(self, began: float, second: float) -> None:
        await asyncio.sleep(began + second / self.bed.speed - asyncio.get_running_loop().time())

    async def _settle(self, found: Mapping[int, frozenset[int]], ledger: Ledger) -> None:
        """Waits until all of what was found has come, though not for ever."""
        for _ in range(round(SETTLE_SECONDS / _AGAIN_SECONDS)):
            if not ledger.lost(found):
                break
            await asyncio.sleep(_AGAIN_SECONDS)
        self._lost = ledger.lost(found)

    def _conclude(self, ledger: Ledger) -> None:
        where = self.bed.placement, self.bed.scheme.title
        self.rows += [Trouble(*where, " ".join(text.split()), self.seed) for text in ledger.troubles]
        self.rows.append(
            Summary(
                placement=self.bed.placement,
                scheme=self.bed.scheme.title,
                frontend=len(ledger.held),
                backend=ledger.backend,
                reports=ledger.reports,
                locations=ledger.locations,
                notes=ledger.notes,
                bytes=ledger.bytes,
                lost=self._lost,
                repeated=ledger.repeated,
                troubles=len(ledger.troubles),
                migrations=self._plans.get(Stage.MIGRATE, 0),
                shuffles=self._plans.get(Stage.SHUFFLE, 0),
                seed=self.seed,
            )
        )


async def _report(data: httpx.AsyncClient, reports: list[dict[str, Any]], ledger: Ledger) -> None:
    if not reports:
        return
    try:
        answer = await data.post(f"/feeds/{REPORTS}", json=reports)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        ledger.complain(f"reports could not be published: {error}")
    else:
        ledger.reports += answer.json()["accepted"]
