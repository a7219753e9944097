"""The head of one shared feed: what drives its core."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Protocol

from tocsin.alarm import Alarm
from tocsin.balance.control.controller import Decision
from tocsin.balance.control.triggers import Stage
from tocsin.data.lake.unclaimed import OutdatedError
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.errors import StorageError, UnavailableError
from tocsin.log import get_logger
from tocsin.slices import actions, events
from tocsin.slices.head import HeadCore
from tocsin.slices.judgement import judge
from tocsin.slices.messages import Commit, CommitRefused, Declined, FromHead, FromNode, Hello

log = get_logger(__name__)

LOOK_SECONDS: Final = 1.0
_CHECKS: Final = 32


class CommitStorage(Protocol):
    """What puts nodes' files into the dataset; each call takes its time, and is made from a thread."""

    def markers(self) -> list[int]:
        """Up to which position the dataset has each slice."""

    def ends(self) -> list[int]:
        """Up to where the log has each slice by now. Raises TocsinError if nobody can tell."""

    def check(self, commit: Commit, /) -> None:
        """Raises InvalidError for what cannot be: files of another kind, records that were never published.

        Raises OutdatedError for what can be no more, and UnavailableError if nobody can tell.
        """

    def store(self, commits: actions.StoreCommits, /) -> None:
        """One commit of the dataset. Raises StorageError if nothing of it was committed, and never will be."""


class HeadDriver:
    """Runs the core of a head: gives it what happens, and does what it wants. All but the disk is on the event loop.

    What can go wrong: the disk refuses (nodes are told, and try again; ``problem`` says why); the log cannot be looked
    at from here (the core is told again how far it went, and ``blind`` says why).

    Args:
        incarnation: another each time that a feed begins to be shared.
        committed: called from a thread after each commit.
        send, close: to the node that has a connection, which is named by a number.
    """

    def __init__(
        self,
        shared: SharedFeed,
        incarnation: str,
        core: HeadCore,
        store: CommitStorage,
        committed: Callable[[], None],
        send: Callable[[int, FromHead], None],
        close: Callable[[int, str], None],
    ) -> None:
        self.shared, self.incarnation, self.core, self.problem, self.blind = shared, incarnation, core, "", ""
        self.declined: dict[str, str] = {}
        """Who cannot process the feed at all, and why."""
        self._store, self._committed, self._send, self._close = store, committed, send, close
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self.tell(events.Tick()))
        self._storing = ThreadPoolExecutor(1, thread_name_prefix=f"head-{self.name}")
        self._checking = ThreadPoolExecutor(_CHECKS, thread_name_prefix=f"head-checks-{self.name}")
        self._turns: dict[str, asyncio.Lock] = {}
        self._looking = ThreadPoolExecutor(1, thread_name_prefix=f"head-log-{self.name}")
        self._under_check: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[events.Event] = deque()
        self._busy = self._ending = False
        self._spawn(self._watch())

    @property
    def name(self) -> str:
        """The feed's."""
        return self.shared.feed.name

    async def stop(self) -> None:
        """Stores nothing any more once this returns."""
        self._ending = True
        self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for pool in (self._storing, self._checking, self._looking):
            await asyncio.to_thread(pool.shutdown)

    async def hear(self, connection: int, node: str, message: FromNode) -> None:
        """A node says something. Raises InvalidError or ForbiddenError if it makes no sense; then nobody has heard it.

        Whether a commit's files are there is looked up before the core hears of it: one that is taken and then fails
        makes others be tried again. Of a node one commit at a time is looked into, however often it comes anew, so that
        only that node waits however much there is to be looked up.
        """
        judge(node, message, self.shared.feed.slices)
        if self._ending:
            return
        if isinstance(message, Hello):
            self.declined.pop(node, None)
        if isinstance(message, Commit):
            try:
                with self._mark_under_check(node, message):
                    await self._check(node, message)
            except (OutdatedError, UnavailableError) as error:
                # Done again, it may be welcome: when the storage answers, or with files that are new.
                if isinstance(error, UnavailableError):
                    self._note(error)
                else:
                    log.warning("a commit cannot count any more", node=node, feed=self.name, reason=str(error))
                self._send(connection, CommitRefused(message.batch, self.core.commits.positions(message)))
                return
        elif isinstance(message, Declined):
            reason = message.reason or "no reason was given"
            log.warning("a node cannot process slices", node=node, feed=self.name, reason=reason)
        self.tell(events.NodeSaid(connection, message))

    async def _check(self, node: str, commit: Commit) -> None:
        turn = self._turns.setdefault(node, asyncio.Lock())

        def end(done: asyncio.Future[None]) -> None:
            turn.release()
            if not done.cancelled():
                # Whoever waited for it may be gone.
                done.exception()

        await turn.acquire()
        checking = self._loop.run_in_executor(self._checking, self._store.check, commit)
        checking.add_done_callback(end)
        # A thread goes on when the connection is over, and has the turn until it is done.
        await asyncio.shield(checking)

    def decline(self, node: str, reason: str) -> None:
        """A node cannot process the feed, until it says hello."""
        if self.declined.get(node) != reason:
            log.warning("a node cannot process a feed", node=node, feed=self.name, reason=reason)
        self.declined[node] = reason

    def tell(self, event: events.Event) -> None:
        """Something has happened. What happens while the core's actions are carried out waits until they are."""
        self._waiting.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting and not self._ending:
                self._handle(self._waiting.popleft())
        finally:
            self._busy = False

    def _handle(self, event: events.Event) -> None:
        try:
            wanted = self.core.handle(self._loop.time(), event)
        except Exception:
            log.exception("fault in a head's core", feed=self.name, cause=type(event).__name__)
            return
        for action in wanted:
            self._carry_out(action)
        at = self.core.wake()
        if at is not None:
            self._alarm.set(at)

    def _carry_out(self, action: actions.Action) -> None:
        match action:
            case actions.Send(connection, message):
                self._send(connection, message)
            case actions.Close(connection, reason):
                self._close(connection, reason)
            case actions.StoreCommits():
                self._spawn(self._commit(action))
            case actions.Decide():
                self._spawn(self._decide(action))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextmanager
    def _mark_under_check(self, node: str, commit: Commit) -> Iterator[None]:
        """Slices of which something is being checked do not wait for their owners, if these have offered it."""
        owned = self.core.ownership
        slices = [part.slice for part in commit.parts if owned.is_owner(node, part.slice, part.epoch)]
        self._under_check.update(slices)
        try:
            yield
        finally:
            self._under_check.subtract(slices)

    async def _watch(self) -> None:
        """Looks at the log again and again. While it does not answer, the core hears how far it went before."""
        ends = list[int]()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looking = self._loop.run_in_executor(self._looking, self._store.ends)
            try:
                while not (await asyncio.wait([looking], timeout=LOOK_SECONDS))[0]:
                    self._tell_ends(ends)
                ends, self.blind = await looking, ""
            except Exception as error:
                self.blind = f"feed {self.name}: the log cannot be looked at ({_first_line(error)})"
            finally:
                looking.cancel()
            self._tell_ends(ends)

    def _tell_ends(self, ends: list[int]) -> None:
        checking = frozenset(slice_ for slice_, times in self._under_check.items() if times > 0)
        self.tell(events.LogReaches(ends, checking))

    async def _commit(self, commits: actions.StoreCommits) -> None:
        try:
            await self._loop.run_in_executor(self._storing, self._store_surely, commits)
        except Exception as error:
            self._note(error, commits.nodes)
            self.tell(events.StoreFailed(commits.number, self.problem))
            return
        self.problem = ""
        self.tell(events.Stored(commits.number))
        await self._loop.run_in_executor(self._storing, self._call_committed)

    def _store_surely(self, commits: actions.StoreCommits) -> None:
        """Stores. Whether it counts must be known: after a fault, the dataset is asked."""
        try:
            self._store.store(commits)
        except StorageError:
            raise
        except Exception:
            log.exception("fault in a commit", feed=self.name)
            reached = self._store.markers()
            if any(reached[slice_] != position for slice_, position in commits.markers.items()):
                raise

    def _call_committed(self) -> None:
        try:
            self._committed()
        except Exception:
            log.exception("fault after a commit", feed=self.name)

    async def _decide(self, question: actions.Decide) -> None:
        try:
            decision = await asyncio.to_thread(question.controller.decide, question.now, question.observed)
        except Exception:
            log.exception("fault in a planner", feed=self.name)
            decision = Decision(Stage.IDLE, "the planner failed")
        log.info("slices balanced", feed=self.name, stage=str(decision.stage), reason=decision.reason)
        self.tell(events.Decided(question.round, decision))

    def _note(self, error: Exception, nodes: Sequence[str] = ()) -> None:
        offered = f" (offered by {', '.join(dict.fromkeys(nodes))})" if nodes else ""
        reason = f"feed {self.name}: {_first_line(error)}{offered}"
        if reason != self.problem:
            log.error("nodes' files cannot be stored", feed=self.name, reason=reason)
        self.problem = reason


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
