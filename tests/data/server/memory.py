"""A data cluster in memory: as little as the server's tests need, behind the protocol the real one satisfies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from tocsin.data.attachment import Attachment
from tocsin.data.control.core import Position
from tocsin.data.feeds.shares import decode_shares
from tocsin.data.language.forms import CreateChannel, CreateDataset, CreateFeed, Drop, LoadDataset, Show, Statement
from tocsin.data.language.parser import parse
from tocsin.data.language.render import render
from tocsin.data.server.cluster import Notices
from tocsin.data.sharing.heads import Heads
from tocsin.errors import InvalidError, NotFoundError, StorageError
from tocsin.model.control import Executed, Notice
from tocsin.model.histories import Cursor
from tocsin.model.messages import (
    ChannelHealth,
    Health,
    Listed,
    Loaded,
    Published,
    PublishedShares,
    Pulled,
    Result,
    StatementOutcome,
)
from tocsin.model.slices import FeedSlices, NodesNeeded, SlicesStatus
from tocsin.model.terms import Asker, Terms, admit, fill_in
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed
from tocsin.schema.records import RecordDecoder


class MemoryTokens:
    """Tokens called like the roles they give; that of a broker is north's, a node's n1's, or of another after a
    hyphen."""

    def __init__(self) -> None:
        self.revoked: set[str] = set()

    def role_of(self, token: str) -> tuple[str, str] | None:
        role, _, name = token.partition("-")
        if token in self.revoked or role not in ("admin", "publisher", "broker", "node"):
            return None
        return name or {"broker": "north", "node": "n1"}.get(role, f"{role}-holder"), role


class MemoryCluster:
    """``failing`` is raised by whatever is called next, until it is None again; the disk is ``full_at`` a creation."""

    def __init__(self) -> None:
        self.failing: Exception | None = None
        self.full_at = ""
        self.definitions: dict[str, Definition] = {}
        self.published: dict[str, list[bytes]] = {}
        self.loaded: dict[str, bytes] = {}
        self.brokers: dict[str, str] = {}
        self.subscriptions: list[tuple[str, dict[str, Any]]] = []
        self.found: list[Result] = []
        self.compared: list[tuple[str, str, Cursor]] = []
        self.part = 1000
        self.left = asyncio.Event()
        self.listeners: dict[str, asyncio.Queue[Notice]] = {}
        self.heads: Heads | None = None
        self.drained: dict[str, bool] = {}
        self.shared: list[FeedSlices] = []
        self.needed = NodesNeeded()
        self.status = Health("ok", channels=[ChannelHealth("Of", "waiting", 3)])

    async def apply(
        self, text: str, directory: Path | None, told: Callable[[StatementOutcome], None] = lambda _: None
    ) -> list[StatementOutcome]:
        self._fail()
        outcomes = []
        for statement in parse(text):
            if self.full_at and f" {self.full_at}" in statement.text:
                raise StorageError("the disk is full")
            outcomes.append(await self._outcome(statement))
            told(outcomes[-1])
        return outcomes

    async def check(self, text: str) -> list[StatementOutcome]:
        self._fail()
        before = dict(self.definitions)
        try:
            return [await self._outcome(statement) for statement in parse(text) if not self._is_load(statement)]
        finally:
            self.definitions = before

    def _is_load(self, statement: Statement) -> bool:
        if isinstance(statement, LoadDataset) and statement.dataset not in self.definitions:
            raise statement.error(f"there is no dataset {statement.dataset}")
        return isinstance(statement, LoadDataset)

    async def _outcome(self, statement: Statement) -> StatementOutcome:
        match statement:
            case CreateDataset(definition=definition) | CreateChannel(definition=definition):
                return self._created(definition, statement)
            case CreateFeed(dataset=name):
                dataset = self.definitions.get(name)
                if not isinstance(dataset, Dataset):
                    raise statement.error(f"there is no dataset {name}")
                return self._created(statement.feed(dataset, 16), statement)
            case Drop(what=what, name=name):
                known = self.definitions.pop(name, None)
                return StatementOutcome(f"{what} {name}", "dropped" if known else "unchanged")
            case Show(what=what):
                return StatementOutcome(f"show {what}", "shown", rows=self.rows(what.value))
            case LoadDataset():
                raise AssertionError("the server must not let it through")
        raise InvalidError("not here")

    def _created(
        self, definition: Definition, statement: CreateDataset | CreateFeed | CreateChannel
    ) -> StatementOutcome:
        before = self.definitions.get(definition.name)
        title = f"{type(definition).__name__.lower()} {definition.name}"
        if before == definition:
            return StatementOutcome(title, "unchanged")
        if before and not statement.or_replace:
            return StatementOutcome(title, "changed", "it differs")
        self.definitions[definition.name] = definition
        return StatementOutcome(title, "replaced" if before else "created")

    async def slices(self) -> SlicesStatus:
        self._fail()
        return SlicesStatus(self.heads is not None, list(self.drained), self.shared, self.needed)

    async def drain_node(self, node: str, on: bool) -> None:
        self._fail()
        self.drained[node] = on

    async def load(self, dataset: str, path: Path) -> Loaded:
        self._fail()
        if dataset not in self.definitions:
            raise NotFoundError(f"there is no dataset {dataset}")
        content = await asyncio.to_thread(path.read_bytes)
        unchanged = self.loaded.get(path.name) == content
        self.loaded[path.name] = content
        return Loaded(content.count(b"\n"), unchanged)

    async def publish(self, feed: str, body: bytes, content_type: str, publisher: str | None = None) -> Published:
        self._fail()
        batch = self._decoder(feed).decode(body, content_type, publisher)
        self.published.setdefault(feed, []).extend(batch.lines)
        return Published(len(batch.lines), batch.refusals)

    async def publish_shares(self, feed: str, body: bytes) -> PublishedShares:
        self._fail()
        shares = decode_shares(self._decoder(feed), cast(Feed, self.definitions[feed]), body)
        lines = shares.batch.lines
        self.published.setdefault(feed, []).extend(lines)
        return PublishedShares(len(lines), shares.batch.refusals, shares.denied, shares.unlisted)

    def _decoder(self, feed: str) -> RecordDecoder:
        definition = self.definitions.get(feed)
        if not isinstance(definition, Feed):
            raise NotFoundError(f"there is no feed {feed}")
        dataset = self.definitions[definition.dataset]
        assert isinstance(dataset, Dataset)
        return RecordDecoder(dataset, definition.sliced_by, bound=definition.terms.bound)

    async def terms(self, channel: str) -> Terms:
        self._fail()
        return cast(Channel, self.definitions[channel]).terms

    async def register_broker(self, name: str, url: str) -> None:
        self._fail()
        self.brokers[name] = url

    def position(self, channel: str) -> Position | None:
        definition = self.definitions.get(channel)
        if not isinstance(definition, Channel):
            return None
        return Position(max((one.execution for one in self.found), default=0), [], definition.terms)

    async def attach(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> Attachment:
        bes = await self.subscribe(broker, channel, parameters, asker)
        definition = self.definitions[channel]
        assert isinstance(definition, Channel)
        if asker is not None:
            parameters = [fill_in(definition.terms, asker.name, one) for one in parameters]
        rows = [tuple(one.values()) for one in parameters]
        rates = [0.5 if be == 0 else None for be in bes]
        return Attachment(definition, bes, rows, rates, 4.0)

    def compare(self, broker: str, channel: str, known: Cursor) -> None:
        self.compared.append((broker, channel, known))

    async def subscribe(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> list[int]:
        self._fail()
        if channel not in self.definitions:
            raise NotFoundError(f"there is no channel {channel}")
        if asker:
            terms = await self.terms(channel)
            admit(terms, asker, f"channel {channel}")
            parameters = [fill_in(terms, asker.name, one) for one in parameters]
        ids = []
        for one in parameters:
            if (channel, one) not in self.subscriptions:
                self.subscriptions.append((channel, one))
            ids.append(self.subscriptions.index((channel, one)))
        return ids

    async def unsubscribe(self, broker: str, bes: list[int]) -> int:
        self._fail()
        return sum(be < len(self.subscriptions) for be in bes)

    async def pull(
        self,
        channel: str,
        first: int,
        last: int,
        bes: list[int] | None = None,
        most: int | None = None,
        broker: str | None = None,
    ) -> AsyncGenerator[Pulled, None]:
        self._fail()
        found = [one for one in self.found if first <= one.execution <= last and (bes is None or one.be in bes)]
        for part in (found[start : start + self.part] for start in range(0, max(1, len(found)), self.part)):
            yield Pulled(part, part[-1:] != found[-1:], last, 1, {})

    async def rates(self, bes: list[int]) -> list[float]:
        self._fail()
        return [1.5 * be for be in bes]

    async def show(self, what: str, limit: int = 1000) -> Listed:
        self._fail()
        rows = self.rows(what)
        return Listed(rows[:limit], len(rows))

    def rows(self, what: str) -> list[dict[str, Any]]:
        kinds: dict[str, type] = {"datasets": Dataset, "feeds": Feed, "channels": Channel}
        if what == "brokers":
            return [{"name": name, "url": url} for name, url in self.brokers.items()]
        if what == "subscriptions":
            return [{"name": str(be), "channel": one[0]} for be, one in enumerate(self.subscriptions)]
        shown = [each for each in self.definitions.values() if isinstance(each, kinds[what])]
        return [
            {"name": each.name, "statement": render(each)}
            | ({"dataset": each.dataset} if isinstance(each, Feed) else {})
            for each in shown
        ]

    async def health(self) -> Health:
        self._fail()
        return self.status

    @asynccontextmanager
    async def listen(self, broker: str) -> AsyncIterator[Notices]:
        self._fail()
        if broker not in self.brokers:
            raise NotFoundError(f"there is no broker {broker}")
        self.listeners[broker] = asyncio.Queue()
        try:
            yield self.listeners[broker]
        finally:
            del self.listeners[broker]
            self.left.set()

    def execute(self, broker: str, channel: str, execution: int, bes: list[int]) -> None:
        """Lets the broker be told of an execution."""
        rates: list[float | None] = [be + 0.5 for be in bes]
        self.listeners[broker].put_nowait(Executed(channel, execution, bes, "", rates, 10.0))

    def find(self, execution: int, be: int, payload: bytes) -> None:
        """Has an execution find something."""
        self.found.append(Result(execution, be, 1, len(payload), msgspec.Raw(payload)))

    def _fail(self) -> None:
        if self.failing:
            raise self.failing
