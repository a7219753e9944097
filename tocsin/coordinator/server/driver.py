"""The driver: carries events to the core, and does what the core wants done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Final, Protocol

from tocsin.balance.control.controller import Decision
from tocsin.balance.control.triggers import Stage
from tocsin.coordinator.actions import Action, Close, Decide, Reply, Send
from tocsin.coordinator.actions import StoreBatch as Batch
from tocsin.coordinator.answers import Answer
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.events import BatchStored, Decided, Event, Handle, Link, Request, Tick
from tocsin.coordinator.server.writer import BatchWriter
from tocsin.coordinator.store import CoordinatorStore
from tocsin.errors import BusyError, TocsinError, UnavailableError
from tocsin.log import get_logger
from tocsin.model.coordination import FromCoordinator

log = get_logger(__name__)

# After a stall the loop runs timers before it has read what brokers sent meanwhile; they are heard out first.
_STALL: Final = 0.5
_HEARING: Final = 0.25
_REFUSED: Final = (
    "the store refuses what it is told, and what is not stored is not answered; it is tried again, and the log says why"
)


class SteadyClock:
    """Seconds since 1970 that never go back, whatever happens to the machine's clock after the start."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() + self._offset


class Wire(Protocol):
    """A broker's connection, as the driver sees it."""

    def send(self, message: FromCoordinator) -> None:
        """Sends a message, some time."""

    def close(self) -> None:
        """Ends the connection, when what was sent before is on its way."""


class CoordinatorDriver:
    """Owns the core. All its methods belong to the event loop's thread.

    What can go wrong: the store refuses (see :class:`BatchWriter`); a planner fails, which is logged and decides
    nothing; the core itself fails, or another coordinator has taken the store over. Then :meth:`run` raises, for what
    is in memory can no longer be trusted: start again from what is stored.
    """

    def __init__(
        self,
        core: CoordinatorCore,
        store: CoordinatorStore,
        clock: SteadyClock,
        answer_seconds: float,
        most_waiting: int,
    ) -> None:
        self._core, self._clock = core, clock
        self._answer_seconds, self._most_waiting = answer_seconds, most_waiting
        self._writer = BatchWriter(store, lambda batch: self.tell(BatchStored(batch)))
        self._planning = ThreadPoolExecutor(1, "planning")
        self._numbers = count(1)
        self._wires: dict[Link, Wire] = {}
        self._answers: dict[Handle, asyncio.Future[Answer]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._hearing = 0.0
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Drives the core until it is cancelled; what waits to be stored then still is, if that can be done."""
        writing = asyncio.create_task(self._writer.run())
        self._schedule()
        try:
            await asyncio.wait([writing, self._failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._planning.shutdown(wait=False, cancel_futures=True)
            self._writer.end()
            await writing
        self._failed.result()

    @property
    def now(self) -> float:
        """The core's time."""
        return self._clock()

    @property
    def problems(self) -> list[str]:
        """Sentences for an operator, none when all is well."""
        refused = [_REFUSED] if self._writer.refused else []
        return [*refused, *self._core.problems]

    def connect(self, wire: Wire) -> Link:
        """A broker's new connection; returns its number."""
        link = next(self._numbers)
        self._wires[link] = wire
        return link

    def disconnect(self, link: Link) -> None:
        """A connection is over, as far as the driver is concerned."""
        self._wires.pop(link, None)

    def tell(self, event: Event) -> None:
        """Something has happened."""
        if self._failed.done():
            return
        try:
            actions = self._core.handle(self.now, event)
        except Exception as error:
            log.exception("a fault in the coordinator's core", event=type(event).__name__)
            self._failed.set_exception(error)
            return
        for action in actions:
            self._do(action)
        self._schedule()

    async def ask(self, request: Callable[[Handle], Request]) -> Answer:
        """The answer to a request.

        What can go wrong: the core refuses it (a TocsinError of its own), there is no answer in time
        (:class:`UnavailableError`), or too many wait already (:class:`BusyError`).
        """
        if len(self._answers) >= self._most_waiting:
            raise BusyError("too many calls are waiting for their answers; try again in a while")
        handle = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[handle] = answer
        try:
            self.tell(request(handle))
            async with asyncio.timeout(self._answer_seconds):
                return await answer
        except TimeoutError:
            raise UnavailableError(
                f"no answer within {self._answer_seconds:g} s: a broker or the store is slow or away; try again"
            ) from None
        finally:
            del self._answers[handle]

    def _do(self, action: Action) -> None:
        match action:
            case Send(link, message):
                if link in self._wires:
                    self._wires[link].send(message)
            case Close(link):
                if link in self._wires:
                    self._wires.pop(link).close()
            case Batch():
                self._writer.add(action)
            case Decide():
                decision = asyncio.get_running_loop().run_in_executor(self._planning, _run_controller, action)
                decision.add_done_callback(self._decided)
            case Reply(handle, answer):
                self._reply(handle, answer)

    def _decided(self, decision: asyncio.Future[Decided]) -> None:
        if not decision.cancelled():
            self.tell(decision.result())

    def _reply(self, handle: Handle, answer: Answer | TocsinError) -> None:
        waiting = self._answers.get(handle)
        if waiting is None or waiting.done():
            return
        if isinstance(answer, TocsinError):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake = self._core.wake()
        delay = max(0.0, max(wake, self._hearing) - self.now)
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick, wake)

    def _tick(self, wanted: float) -> None:
        late = self.now - max(wanted, self._hearing)
        if late > _STALL:
            log.warning("the coordinator was held up", seconds=round(late, 1))
            self._hearing = self.now + _HEARING
            self._schedule()
        else:
            self.tell(Tick())


def _run_controller(question: Decide) -> Decided:
    try:
        return question.run()
    except Exception as error:
        log.exception("a planner failed")
        return Decided(question.round, Decision(Stage.IDLE, f"the planner failed: {type(error).__name__}; see the log"))
