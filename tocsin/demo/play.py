"""The demo itself: the order of events, from the application's creation to the verdict."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from contextlib import suppress
from typing import Final

from tocsin.apps.emergency import APPLICATION, World
from tocsin.client.operator import Operator
from tocsin.coordinator.answers import NetworkStatus
from tocsin.crowd.crowd import Crowd
from tocsin.crowd.messages import Compared, CrowdFigures, CrowdTrouble, Gathered, Heard, PersonMoved
from tocsin.crowd.observation import count_executions, find_owed, measure_strain
from tocsin.crowd.shortfall import Strain
from tocsin.demo import summary
from tocsin.demo.board import shares
from tocsin.demo.screen import DemoScreen
from tocsin.demo.verdict import WrongError
from tocsin.errors import TocsinError
from tocsin.local.running import told
from tocsin.model.slices import SlicesStatus
from tocsin.tasks import until_one_ends

# Long enough for every channel to have run, so that the brokers' loads are known.
HOLD_SECONDS: Final = 30
# What is on its way at the end is waited for.
SETTLE_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 0.5
_PLAN_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 5
_MOST_TROUBLE: Final = 10


async def create(operator: Operator, world: World, screen: DemoScreen) -> None:
    """Creates the application, loads the shelters, and holds balancing off."""
    with screen.waiting("Creating the emergency application"):
        outcomes = await operator.apply(APPLICATION.read_bytes())
        await operator.load("Shelters", world.shelters())
        await operator.balance(False)
    screen.outcomes(outcomes)


class Play:
    """One performance, until ``ended`` is set or so many seconds have passed.

    What can go wrong: the network does (a TocsinError), or its verdict is not clean (WrongError, when all is shown).
    """

    def __init__(self, operator: Operator, screen: DemoScreen, ended: asyncio.Event) -> None:
        self._operator, self._screen, self._ended = operator, screen, ended
        self._strain = Strain()
        self._moves: Counter[tuple[str, str]] = Counter()
        self._decision = ""
        self._shares: list[str] = []
        self._troubles = 0
        self._second = 0

    async def run(self, crowd: Crowd, seconds: int | None) -> None:
        """The whole of it, with these people."""
        self._crowd = crowd
        await until_one_ends(crowd.watch(), self._direct(seconds))

    async def _direct(self, seconds: int | None) -> None:
        gathering = asyncio.ensure_future(self._crowd.wait_gathered())
        with self._screen.waiting("Connecting the people"):
            await until_one_ends(_done(gathering), told(self._ended))
        if self._ended.is_set():
            return
        self._screen.gathered(gathering.result(), self._crowd.processes)
        self._screen.explain(hold_seconds(seconds), seconds)
        first, self._before = await count_executions(self._operator), await measure_strain(self._operator)
        self._crowd.begin()
        with self._screen.stage():
            before = await self._watch(hold_seconds(seconds), f"balancing is held off until {hold_seconds(seconds)} s")
            before = await self._patience(before, seconds)
            if not self._ended.is_set():
                await self._release()
            after = await self._watch(seconds, "balancing is on")
        self._crowd.hush()
        await self._conclude(first, before, after)

    async def _release(self) -> None:
        """Shows what would be moved, where the coordinator can say so in time, and lets it be done."""
        try:
            async with asyncio.timeout(_PLAN_SECONDS):
                self._screen.proposal(await self._operator.plan())
        except (TimeoutError, TocsinError):
            self._screen.say("Balancing is on from here; what it does is shown as it happens.", style="bold yellow")
        await self._operator.balance(True)

    async def _watch(self, until: int | None, remark: str) -> NetworkStatus:
        """Looks every second, up to that second; gives what it saw last."""
        status = await self._operator.status()
        began = asyncio.get_running_loop().time() - self._second
        while not self._ended.is_set() and (until is None or self._second < until):
            self._second += 1
            await self._pause(began + self._second - asyncio.get_running_loop().time())
            with suppress(TocsinError):
                # The network goes on without its coordinator, and so does this.
                status = await self._operator.status()
            self._tell_of_moves(status)
            self._screen.look(self._second, status, self._crowd.figures, remark)
            if self._second % _LOOK_SECONDS == 0:
                await self._look()
        return status

    async def _look(self) -> None:
        """Asks the data cluster how it keeps up, and remembers the worst; and who does what of it."""
        with suppress(TocsinError):
            now = (await measure_strain(self._operator)).after(self._before)
            self._strain = Strain(max(now.lag, self._strain.lag), now.executions, now.missed)
            self._tell_of_shares(await self._operator.slices())

    def _tell_of_shares(self, status: SlicesStatus) -> None:
        shown = [shares(feed) for feed in status.feeds if feed.shared]
        if shown != self._shares:
            self._screen.shares(shown)
        self._shares = shown

    async def _patience(self, status: NetworkStatus, seconds: int | None) -> NetworkStatus:
        """On a busy machine the first executions may take longer than was reckoned with: there is no load yet."""
        longest = math.inf if seconds is None else seconds - 1
        while not status.mean and not self._ended.is_set() and self._second < longest:
            status = await self._watch(self._second + 1, "balancing is held off until the first notifications")
        return status

    def _tell_of_moves(self, status: NetworkStatus) -> None:
        stage, decision = status.decision.partition(": ")[0], status.decision
        if decision != self._decision and stage in ("shuffle", "migrate", "join", "drain"):
            self._screen.decision(decision)
        self._decision = decision
        if self._moves:
            names = {broker.url: broker.name for broker in status.brokers}
            moves, self._moves = self._moves, Counter()
            self._screen.moves(Counter({(names.get(a, a), names.get(b, b)): n for (a, b), n in moves.items()}))

    async def _conclude(self, first: dict[str, int], before: NetworkStatus, after: NetworkStatus) -> None:
        last = await count_executions(self._operator)
        self._screen.say()
        with self._screen.waiting("Waiting for what is on its way, and comparing it with what was found"):
            found = await find_owed(self._operator, first, last)
            compared = await self._settle(found)
        await self._look()
        figures = self._crowd.figures
        self._screen.say()
        self._screen.console.print(summary.balance(before, after))
        self._screen.say()
        for sentence in summary.delivery(self._second, figures, compared):
            self._screen.console.print(sentence, soft_wrap=True)
        for sentence in summary.effort(figures, self._crowd.processes, self._crowd.missing, self._strain):
            self._screen.console.print(sentence, soft_wrap=True)
        self._screen.say()
        insist(compared, figures)

    async def _settle(self, found: dict[int, frozenset[int]]) -> Compared:
        deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
        while True:
            compared = await self._crowd.compare(found)
            if not compared.lost or asyncio.get_running_loop().time() > deadline:
                return compared
            await asyncio.sleep(_AGAIN_SECONDS)

    def hear(self, telling: Heard | PersonMoved | CrowdTrouble) -> None:
        """Shows what the people tell."""
        match telling:
            case Heard():
                self._screen.heard(telling)
            case PersonMoved(before=before, after=after):
                self._moves[before, after] += 1
            case CrowdTrouble(message=message):
                self._trouble(message)

    def _trouble(self, message: str) -> None:
        """Shows the first few: what hits one of the people often hits all."""
        self._troubles += 1
        if self._troubles <= _MOST_TROUBLE:
            self._screen.trouble(message)

    async def _pause(self, seconds: float) -> None:
        """Waits, and no longer when the play is to end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), max(seconds, 0))


def hold_seconds(seconds: int | None) -> int:
    """How long balancing is held off in a demo of so many seconds."""
    return HOLD_SECONDS if seconds is None else min(HOLD_SECONDS, max(seconds // 2, 1))


async def _done(future: asyncio.Future[Gathered]) -> None:
    await asyncio.shield(future)


def insist(compared: Compared, figures: CrowdFigures) -> None:
    """Raises WrongError unless everybody got everything, once and in order."""
    if compared.lost or figures.duplicates or figures.disordered:
        raise WrongError
