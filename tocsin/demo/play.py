"""The demo itself: prepares the data cluster, publishes the world second by second, and shows what comes back.

Everything goes through the server, as it does for anyone: statements, records and subscriptions by REST, notifications
by the control socket that brokers hold. What went wrong there is raised as it is.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tocsin.apps.emergency import APPLICATION, World
from tocsin.cli.connection import Server
from tocsin.demo.cast import Part
from tocsin.demo.screen import Screen
from tocsin.demo.tally import Found, Tally
from tocsin.errors import UnavailableError
from tocsin.model import control
from tocsin.model.messages import Applied, Broker, Health, Listed, Published, Rates, RatesWanted, Result, Subscribe
from tocsin.model.messages import Subscribed as Numbers
from tocsin.tasks import until_one_ends

T = TypeVar("T")

BROKER: Final = "demo"
# Channels run every 10 seconds or less often, so that no execution is missed.
LOOK_SECONDS: Final = 2
REPORT_SECONDS: Final = 10
SETTLE_SECONDS: Final = 5
PATIENCE_SECONDS: Final = 120

_JSON: Final = "application/json"
_MESSAGES: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(
    control.Welcome | control.Executed | control.Behind | control.Results | control.Error
)


class Play:
    """One performance on the server that ``server`` reaches with ``token``, until ``ended`` is set."""

    def __init__(
        self, server: Server, token: str, world: World, parts: list[Part], screen: Screen, ended: asyncio.Event
    ) -> None:
        self._server, self._token, self._world = server, token, world
        self._parts, self._screen, self._ended = parts, screen, ended
        self._held: dict[int, Part] = {}
        self._tally = Tally()
        self._second = 0

    async def prepare(self) -> None:
        """Creates the application, loads the shelters and subscribes."""
        with self._screen.waiting("Creating the emergency application"):
            applied = await self._post("/apply", APPLICATION.read_bytes(), Applied, "text/sql")
        self._screen.outcomes(applied.outcomes)
        shelters = self._world.shelters()
        await self._call("/datasets/Shelters/load", msgspec.json.encode(shelters), _JSON)
        self._screen.say(f"{len(shelters)} shelters loaded")
        await self._post("/brokers", Broker(BROKER, self._server.url), Broker)
        for part in self._parts:
            wanted = Subscribe(BROKER, part.channel, [part.parameters])
            self._held[(await self._post("/subscriptions", wanted, Numbers)).ids[0]] = part
        await self._look()
        self._screen.say()
        self._screen.parts(self._tally)

    async def run(self, seconds: int | None) -> None:
        """Publishes, and shows what is found; ends after so many seconds, or else when it is told to."""
        address = f"{self._server.url.replace('http', 'ws', 1)}/control?broker={BROKER}"
        headers = {"Authorization": f"Bearer {self._token}"}
        async with connect(address, additional_headers=headers, max_size=None) as socket:
            await until_one_ends(self._publish(seconds), self._listen(socket), self._watch())
        await self._settle()

    def conclude(self) -> None:
        """Shows what happened."""
        self._screen.summary(self._second, self._tally, self._held)

    async def _publish(self, seconds: int | None) -> None:
        """The world in its own time: each second of it once that second has come."""
        began = asyncio.get_running_loop().time()
        for second in islice(self._world.seconds(), seconds):
            await self._send("locations", second.locations)
            await self._send("reports", second.reports)
            self._second = second.at + 1
            if await self._pause(began + self._second - asyncio.get_running_loop().time()):
                return
        await self._be_patient()

    async def _be_patient(self) -> None:
        """On a busy machine the first executions may take longer than everything else: they are waited for."""
        if self._tally.found:
            return
        self._screen.say("Everything is published; waiting for the first executions to end …")
        for _ in range(PATIENCE_SECONDS):
            if self._tally.found or await self._pause(1):
                return

    async def _send(self, feed: str, records: list[dict[str, Any]]) -> None:
        if not records:
            return
        published = await self._post(f"/feeds/{feed}", records, Published)
        self._tally.published[feed] += published.accepted
        self._tally.refused += len(published.refused)

    async def _listen(self, socket: ClientConnection) -> None:
        """Pulls what each notice announces, and shows it."""
        try:
            async for message in socket:
                await self._told(socket, _MESSAGES.decode(message))
        except ConnectionClosed:
            pass
        raise UnavailableError("the data cluster has closed the connection")

    async def _told(self, socket: ClientConnection, message: control.Message) -> None:
        match message:
            case control.Executed(channel=channel, execution=execution, bes=bes):
                await _ask(socket, control.Pull(execution, channel, execution, execution, bes))
            case control.Behind(channel=channel, first=first, last=last):
                await _ask(socket, control.Pull(last, channel, first, last, list(self._held)))
            case control.Results(results=results):
                for result in results:
                    self._show(result)
            case control.Error(message=reason):
                raise UnavailableError(reason)

    def _show(self, result: Result) -> None:
        part = self._held.get(result.be)
        if part is None:
            return
        self._tally.add(result.be, Found(1, result.rows, result.bytes))
        self._screen.notification(part, msgspec.json.decode(result.payload))

    async def _watch(self) -> None:
        """Looks at the channels and the feeds now and then, and says how it goes."""
        said = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()
            if self._second >= said + REPORT_SECONDS:
                said = self._second - self._second % REPORT_SECONDS
                self._screen.progress(self._second, self._tally)

    async def _settle(self) -> None:
        """Waits a moment for what was published last to be stored."""
        deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
        await self._look()
        while self._tally.waiting_bytes and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
            await self._look()

    async def _look(self) -> None:
        self._tally.look(msgspec.json.decode(await self._get("/channels"), type=Listed).items)
        health = msgspec.json.decode(await self._get("/health"), type=Health)
        self._tally.waiting_bytes = sum(feed.backlog_bytes for feed in health.feeds)
        self._tally.problems = health.problems
        bes = list(self._held)
        rates = await self._post("/rates", RatesWanted(bes), Rates)
        self._tally.rates = dict(zip(bes, rates.rates, strict=True))

    async def _pause(self, seconds: float) -> bool:
        """Waits; True, and at once, when the play is to end."""
        try:
            await asyncio.wait_for(self._ended.wait(), max(seconds, 0))
        except TimeoutError:
            return False
        return True

    async def _post(self, path: str, body: Any, answer: type[T], content_type: str = _JSON) -> T:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return msgspec.json.decode(await self._call(path, content, content_type), type=answer)

    async def _call(self, path: str, content: bytes, content_type: str) -> bytes:
        return await asyncio.to_thread(self._server.post, path, content, content_type)

    async def _get(self, path: str) -> bytes:
        return await asyncio.to_thread(self._server.get, path)


async def _ask(socket: ClientConnection, request: control.Request) -> None:
    await socket.send(msgspec.json.encode(request).decode())
