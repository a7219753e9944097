"""The demo of stock alerts itself: the order of events, from the people's arrival to the verdict."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import Any, Final

import msgspec

from tocsin.apps.stocks.quotes import Quote, make_quotes
from tocsin.content.filter import conjunction
from tocsin.crowd.delays import Stopwatch
from tocsin.demo.stocks.check import AlertCheck, AlertVerdict
from tocsin.demo.stocks.market import Market
from tocsin.demo.stocks.people import People, draw_alerts, hang_boards
from tocsin.demo.stocks.screen import StockScreen, highest_output
from tocsin.demo.verdict import WrongError
from tocsin.errors import TocsinError
from tocsin.local.overlay import LocalOverlay
from tocsin.local.running import told
from tocsin.overlay.client import Note
from tocsin.overlay.server.status import OverlayFigures
from tocsin.overlay.server.survey import survey
from tocsin.tasks import until_one_ends

SYMBOLS: Final = 20
DAYS: Final = 500
PUBLISHERS: Final = 8
# What is on its way at the end is waited for.
SETTLE_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 0.5
# So seldom is an alert shown.
_SAMPLE_SECONDS: Final = 0.7
_VARIETY: Final = 8
# All of it happens in minutes here, where operators would think in hours.
QUICKLY: Final = {
    "overlay.report_seconds": 1,
    "overlay.detect_seconds": 1,
    "overlay.rate_seconds": 2,
    "overlay.stabilize_seconds": 3,
    "overlay.sampling_seconds": 5,
}
# What each edge can send, in parts of what all people together are sent: edges are unequal.
SHARES: Final = (1.0, 1.8, 1.4, 1.0)
# Of what is published, this part is for somebody, with a size of so many bytes.
_MATCHED: Final = 0.075
_BYTES: Final = 215


class StockPlan(msgspec.Struct, frozen=True):
    """How large it is: people, publications per second, and the seed that all chance comes from."""

    people: int
    rate: float
    seed: int


class StockPlay:
    """One performance, until ``ended`` is set or so many seconds have passed.

    What can go wrong: the overlay does (a TocsinError), or the verdict is not clean (WrongError, when all is shown).
    """

    def __init__(self, overlay: LocalOverlay, plan: StockPlan, screen: StockScreen, ended: asyncio.Event) -> None:
        self._overlay, self._plan, self._screen, self._ended = overlay, plan, screen, ended
        self._quotes = make_quotes(plan.seed, SYMBOLS, DAYS)
        alerts = draw_alerts(plan.seed, plan.people, self._quotes)
        edges = [overlay.url(name) for name in overlay.edge_names]
        self._people = People(alerts, hang_boards(overlay.edges), edges, overlay.head_names, self._told)
        self._check = AlertCheck(self._people.wanted)
        self._filters = {person: str(conjunction(wanted)) for person, wanted in alerts.items()}
        self._stopwatch, self._published = Stopwatch(), dict[tuple[str, int], float]()
        self._counts: Counter[str] = Counter()
        self._edges: list[OverlayFigures] = []
        self._worst: list[OverlayFigures] = []
        self._moved, self._second, self._shown_at = 0, 0, 0.0
        # Not the same ones again and again, as those with much to hear would be.
        self._shown = deque[str](maxlen=_VARIETY)

    async def run(self, seconds: int | None) -> None:
        """The whole of it."""
        async with self._people:
            with self._screen.waiting("Connecting the people"):
                await until_one_ends(self._people.gather(), told(self._ended))
            if self._ended.is_set():
                return
            self._screen.gathered(list(self._filters.values()))
            self._screen.explain(self._plan.rate, seconds)
            await until_one_ends(self._people.watch(), self._direct(seconds))

    async def _direct(self, seconds: int | None) -> None:
        closing, heads = asyncio.Event(), [self._overlay.url(name) for name in self._overlay.head_names]
        names = [f"exchange-{number}" for number in range(1, PUBLISHERS + 1)]
        market = Market(self._quotes, heads, names, self._plan.rate, self._publish)
        trading = asyncio.create_task(market.open(closing))
        try:
            with self._screen.stage():
                await until_one_ends(self._watch(seconds), _done(trading))
            closing.set()
            self._screen.say()
            with self._screen.waiting("Waiting for what is on its way, and comparing it with what was published"):
                await trading
                verdict = await self._settle()
        finally:
            trading.cancel()
            await asyncio.gather(trading, return_exceptions=True)
        self._conclude(verdict)

    async def _watch(self, seconds: int | None) -> None:
        """Looks every second."""
        began = asyncio.get_running_loop().time()
        while not self._ended.is_set() and (seconds is None or self._second < seconds):
            self._second += 1
            with suppress(TimeoutError):
                pause = began + self._second - asyncio.get_running_loop().time()
                await asyncio.wait_for(self._ended.wait(), max(pause, 0))
            await self._look()
            self._screen.look(self._second, self._edges, self._check.delivered)

    async def _look(self) -> None:
        with suppress(TocsinError):
            # Brokers that die are started again meanwhile, and are seen the next time.
            head = self._overlay.url(self._overlay.head_names[0])
            edges = {broker.broker: broker for broker in (await asyncio.to_thread(survey, head)).brokers}
            self._edges = [edges[name] for name in self._overlay.edge_names if name in edges]
        if not self._worst or highest_output(self._edges) > highest_output(self._worst):
            self._worst = self._edges
        if moves := self._people.moves():
            self._moved += moves.total()
            names = {self._overlay.url(name): name for name in self._overlay.edge_names}
            self._screen.moves(Counter({(names.get(a, a), names.get(b, b)): n for (a, b), n in moves.items()}))

    async def _settle(self) -> AlertVerdict:
        deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
        while True:
            verdict = self._check.judge()
            if not verdict.lost or asyncio.get_running_loop().time() > deadline:
                return verdict
            await asyncio.sleep(_AGAIN_SECONDS)

    def _conclude(self, verdict: AlertVerdict) -> None:
        self._screen.say()
        if self._edges:
            self._screen.conclude(self._worst, self._edges)
        waits = self._stopwatch.delays()
        self._screen.judge(self._second, self._check.published, verdict, self._moved, waits)
        if not verdict.clean:
            raise WrongError

    def _publish(self, publisher: str, quote: Quote) -> None:
        self._check.publish(publisher, quote)
        self._counts[publisher] += 1
        self._published[publisher, self._counts[publisher]] = asyncio.get_running_loop().time()

    def _told(self, person: str, note: Note) -> None:
        now = asyncio.get_running_loop().time()
        self._check.tell(person, note)
        if (at := self._published.get((note.publisher, note.sequence))) is not None:
            self._stopwatch.add(now - at)
        if now - self._shown_at >= _SAMPLE_SECONDS and person in self._filters and person not in self._shown:
            self._shown_at = now
            self._shown.append(person)
            self._screen.told(person, self._filters[person], note)


def bandwidths(plan: StockPlan, edges: int) -> list[float]:
    """What each edge can send, in bytes per second: together a few times what all people are sent."""
    sent = plan.people * plan.rate * _MATCHED * _BYTES
    return [round(sent * SHARES[number % len(SHARES)]) for number in range(edges)]


def edge_settings(plan: StockPlan, edges: int) -> list[dict[str, Any]]:
    """The settings of each edge."""
    return [{"overlay.bandwidth": bandwidth} for bandwidth in bandwidths(plan, edges)]


async def _done(task: asyncio.Task[None]) -> None:
    await asyncio.shield(task)
