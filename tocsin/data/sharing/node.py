"""A processing node of one feed: what drives its core. In a worker's process, and in the data cluster's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from tocsin.alarm import Alarm
from tocsin.data.cancelling import cancel_until
from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.sharing.gauge import Usage
from tocsin.data.sharing.rates import SliceRates
from tocsin.errors import TocsinError
from tocsin.log import get_logger
from tocsin.slices import actions, events
from tocsin.slices.messages import Epoch, FromHead, FromNode, SliceLoad, SlicePart
from tocsin.slices.node import NodeCore

log = get_logger(__name__)

GAUGE_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 5.0
"""A log that has not answered for so long cannot be looked at."""

T = TypeVar("T")


class PartLike(Protocol):
    """What was read of a slice: the records between two positions, and how many they are."""

    @property
    def slice(self) -> int: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def records(self) -> int: ...


class BatchLike(Protocol):
    """A batch that is written and synced, in files that are described for the head."""

    @property
    def parts(self) -> Sequence[PartLike]: ...
    @property
    def files(self) -> Sequence[str]: ...


class SliceWork(Protocol):
    """The work itself; each call takes its time, and is made from a thread."""

    def prepare(self, slices: Collection[int], /) -> None:
        """Makes it possible to process these."""

    def forget(self, slices: Collection[int], /) -> None:
        """Lets go of what was kept for them."""

    def process(self, starts: Mapping[int, int], /) -> BatchLike:
        """Reads slices from these positions on, a batch at most; without parts, there was nothing."""

    def backlog(self, starts: Mapping[int, int], /) -> dict[int, int]:
        """How many bytes lie ahead of these positions."""

    def cancel(self) -> None:
        """What is processed just now will not count, and fails soon if it might take long."""

    def discard(self, files: Sequence[str], /) -> None:
        """These will never count."""

    def learn(self, channels: Collection[NodeChannel], /) -> None:
        """These channels are matched with what is read, and no others. Does not take long: it may be called here."""

    def close(self) -> None:
        """Lets go of everything that it keeps; the last call."""


class NodeDriver:
    """Runs the core of a node: gives it what happens, and does what it wants. All but the work is on the event loop.

    What can go wrong: the work fails (the core is told, and tries again; ``problem`` says why), or takes long (the head
    hears from the node meanwhile, with the figures that were measured last); the log cannot be looked at, or does not
    answer (the head is told that, beside the figures of before).

    Args:
        say: takes a message for the head, and does not answer before it returns.
        stopped: called when the node has nothing more to do.
        usage: how busy the process was; None where that says nothing, as Spark runs elsewhere.
    """

    def __init__(
        self,
        core: NodeCore,
        work: SliceWork,
        say: Callable[[FromNode], None],
        stopped: Callable[[], None],
        usage: Callable[[], Usage | None],
    ) -> None:
        self.core, self._problem, self._blind = core, "", ""
        self._work, self._say, self._stopped, self._usage = work, say, stopped, usage
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self.tell(events.Tick()))
        # One after the other, since a batch rests on what those before have left behind.
        self._working = ThreadPoolExecutor(1, thread_name_prefix="slices")
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="slices-backlog")
        self._rates, self._loads = SliceRates(), list[SliceLoad]()
        self._rows, self._busy, self._batch_seconds = 0, 0.0, 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False
        self._spawn(self._measure())
        self._spawn(self._report())

    async def stop(self) -> None:
        """Begins nothing any more, and waits for what is at hand; but not for a feed's function."""
        self._ending = True
        self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for pool in (self._working, self._looking):
            ending = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, name="slices-ending")
            ending.start()
            await asyncio.to_thread(cancel_until, partial(_has_ended, ending), self._work.cancel)

    @property
    def problem(self) -> str:
        """Why it does not get on, with all slices or with some; empty if it does."""
        left_out = self.core.failing.left_out
        some = "; ".join(f"slice {slice_} is left out: {reason}" for slice_, reason in list(left_out.items())[:3])
        return self._problem or some or self._blind

    @property
    def ended(self) -> bool:
        """Whether it was stopped."""
        return self._ending

    def opened(self) -> None:
        """The connection to the head stands."""
        self.tell(events.HeadOpened())

    def lost(self) -> None:
        """It does not any more."""
        self.tell(events.HeadLost())

    def heard(self, message: FromHead) -> None:
        """The head says something."""
        self.tell(events.HeadSaid(message))

    def learn(self, channels: Collection[NodeChannel]) -> None:
        """The channels are these."""
        self._work.learn(channels)

    def leave(self) -> None:
        """The node is to end when others have its slices."""
        self.tell(events.LeaveWanted())

    def tell(self, event: events.Event) -> None:
        """Something has happened."""
        if self._ending:
            return
        try:
            wanted = self.core.handle(self._loop.time(), event)
        except Exception:
            log.exception("fault in a node's core", cause=type(event).__name__)
            return
        for action in wanted:
            self._carry_out(action)
        at = self.core.wake()
        if at is not None:
            self._alarm.set(at)

    def _carry_out(self, action: actions.Action) -> None:
        match action:
            case actions.SendHead(message):
                self._say(message)
            case actions.Prepare(slices):
                self._spawn(self._prepare(slices))
            case actions.Forget(slices):
                self._spawn(self._try(self._work.forget, list(slices)))
            case actions.Process(batch, slices):
                self._spawn(self._process(batch, slices))
            case actions.Discard(files):
                self._spawn(self._try(self._work.discard, files))
            case actions.EndNode():
                self._stopped()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare(self, slices: dict[int, Epoch]) -> None:
        try:
            await self._in_order(self._work.prepare, list(slices))
        except Exception as error:
            self.tell(events.PreparationFailed(slices, self._note(error)))
        else:
            self.tell(events.SlicesPrepared(slices))

    async def _process(self, batch: int, slices: dict[int, tuple[Epoch, int]]) -> None:
        starts = {slice_: position for slice_, (_, position) in slices.items()}
        try:
            done = await self._in_order(self._process_timed, starts)
        except Exception as error:
            self.tell(events.ProcessingFailed(batch, self._note(error)))
            return
        self._problem = ""
        epochs = {slice_: epoch for slice_, (epoch, _) in slices.items()}
        parts = [SlicePart(one.slice, epochs[one.slice], one.begin, one.end, one.records) for one in done.parts]
        self._rows += sum(part.records for part in parts)
        self.tell(events.Processed(batch, parts, list(done.files)))

    def _process_timed(self, starts: Mapping[int, int]) -> BatchLike:
        began = self._loop.time()
        done = self._work.process(starts)
        seconds = self._loop.time() - began
        if done.parts:
            self._busy += seconds
            self._batch_seconds = seconds
        return done

    async def _try(self, work: Callable[[Any], None], what: object) -> None:
        """What nothing depends on."""
        try:
            await self._in_order(work, what)
        except Exception as error:
            self._note(error)

    async def _in_order(self, work: Callable[..., T], *arguments: object) -> T:
        return await self._loop.run_in_executor(self._working, work, *arguments)

    def _note(self, error: Exception) -> str:
        """The reason, which is logged when it is another than before."""
        reason = _first_line(error)
        if reason != self._problem:
            told = log.warning if isinstance(error, TocsinError) else log.exception
            told("a node cannot go on for now", node=self.core.name, reason=reason)
        self._problem = reason
        return reason[:1000]

    async def _measure(self) -> None:
        """Looks at the log again and again. While it cannot be looked at, what was seen last is told, and that."""
        while True:
            await asyncio.sleep(GAUGE_SECONDS)
            held = self.core.slices.items()
            positions = {slice_: one.position for slice_, one in held if one.position is not None}
            looking = self._loop.run_in_executor(self._looking, self._look, positions)
            try:
                answered, _ = await asyncio.wait([looking], timeout=ANSWER_SECONDS)
                if not answered:
                    self._blind = f"the log has not answered for {ANSWER_SECONDS:.0f} s"
                self._loads, self._blind = await looking, ""
            except Exception as error:
                self._blind = f"the log cannot be looked at ({_first_line(error)})"
            finally:
                looking.cancel()

    def _look(self, positions: dict[int, int]) -> list[SliceLoad]:
        before = self._rates.before(positions)
        grown = self._work.backlog(before) if before else {}
        ahead = self._work.backlog(positions) if positions else {}
        return self._rates.note(self._loop.time(), positions, grown, ahead)

    async def _report(self) -> None:
        looked = self._loop.time()
        while True:
            await asyncio.sleep(GAUGE_SECONDS)
            now = self._loop.time()
            seconds, looked = max(now - looked, 1e-9), now
            busy, rows = min(self._busy / seconds, 1.0), self._rows / seconds
            self._busy, self._rows = 0.0, 0
            usage = self._usage() or Usage(busy, 0.0)
            self.tell(events.Gauged(usage.cpu, usage.memory, rows, self._batch_seconds, self._loads, self._blind))


def _has_ended(thread: threading.Thread, seconds: float) -> bool:
    thread.join(seconds)
    return not thread.is_alive()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
