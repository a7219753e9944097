"""The channels that there are, each with what makes it work: its definition, its results, and how it is executed.

A crash may interrupt each change anywhere, for it has an order: checked, kept from running, stored, then brought to
life or let go.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from tocsin.data.attachment import Attachment
from tocsin.data.channels.execution import Executor
from tocsin.data.channels.letters import DeadLetters
from tocsin.data.channels.noderesults import NodeResults
from tocsin.data.channels.runner import Runner, Status
from tocsin.data.compiler.check import Compiled
from tocsin.data.compiler.compiler import Compiler
from tocsin.data.conflicts import find
from tocsin.data.control.core import Position
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import CHANNELS_DEAD_LETTERS, RESULTS, SUBSCRIPTIONS
from tocsin.data.lake.table import Table
from tocsin.data.removal import discard
from tocsin.data.results import Cache, ChannelResults
from tocsin.data.store import Aside, Store
from tocsin.data.subscriptions import SubscriptionRegistry
from tocsin.errors import GoneError, NotFoundError, StatementError
from tocsin.log import get_logger
from tocsin.model.histories import Era, incarnation
from tocsin.model.terms import Asker, admit, fill_in
from tocsin.schema.definitions import Channel
from tocsin.settings import Settings

log = get_logger(__name__)


@dataclass(frozen=True)
class LiveChannel:
    """A channel that exists, counted under the last incarnation of its ``history``.

    It is ``compiled`` once Spark has checked it; if Spark does not take it any more, ``refused`` says why.
    """

    definition: Channel
    results: ChannelResults
    history: list[Era]
    compiled: Compiled | None = None
    refused: str = ""

    @property
    def position(self) -> Position:
        """How far it is."""
        return Position(self.results.execution, self.history, self.definition.terms)

    def reads(self, dataset: str) -> bool:
        """Whether its body reads a dataset."""
        if self.compiled is not None:
            return dataset in self.compiled.whole | self.compiled.fresh
        return re.search(rf"\b{dataset}\b", self.definition.body, re.IGNORECASE) is not None


class LiveChannels:
    """All channels by name. Changes come one at a time; looking is free.

    Args:
        channels: those that are stored.
        tables: the datasets.
        lake: where results, dead letters and subscriptions' files are.
        dropped: called with the name and the last incarnation of a channel that is no more.
        changed: called with a channel that has other terms than before.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        channels: Iterable[Channel],
        tables: Mapping[str, Table],
        compiler: Compiler,
        runner: Runner,
        lake: Folder,
        dropped: Callable[[str, str], None],
        changed: Callable[[Channel], None],
    ) -> None:
        self._store, self._tables, self._compiler, self._runner = store, tables, compiler, runner
        self._lake, self._dropped, self._changed = lake, dropped, changed
        self._settings = settings.channels
        self._cache = Cache(settings.results.cache_bytes)
        self.dead_letters = DeadLetters(lake.below(CHANNELS_DEAD_LETTERS))
        self._live: dict[str, LiveChannel] = {}
        self._open(channels)
        self.subscriptions = SubscriptionRegistry(store, lake.below(SUBSCRIPTIONS), settings.channels.parameter_bytes)

    def __getitem__(self, name: str) -> LiveChannel:
        return self._live[name]

    def __iter__(self) -> Iterator[LiveChannel]:
        return iter(list(self._live.values()))

    def find(self, name: str) -> LiveChannel:
        """The channel of that name, in any case."""
        return find(self._live, name, "channel")

    def position(self, name: str) -> Position | None:
        """How far the channel of that name is, in any case; None if there is none."""
        folded = name.casefold()
        return next((live.position for live in self if live.definition.name.casefold() == folded), None)

    @property
    def definitions(self) -> dict[str, Channel]:
        """What was said of each."""
        return {live.definition.name: live.definition for live in self}

    def start(self, spark: SparkSession, nodes: NodeResults | None = None) -> None:
        """Lets all channels run, on Spark; one that Spark no longer takes says so, and the others go on.

        Where there are ``nodes``, they are told of those that they can match.
        """
        for live in self:
            channel = live.definition
            try:
                compiled = self._compiler.compile(channel)
            except StatementError as error:
                self._live[channel.name] = replace(live, refused=f"this channel can no longer be run: {error}")
                log.error("a channel can no longer be run", channel=channel.name, reason=str(error))  # noqa: TRY400
                continue
            self._live[channel.name] = replace(live, compiled=compiled)
            self._runner.add(compiled, live.results)
        asides = self._store.set_aside
        executor = Executor(spark, self._tables, self.subscriptions, asides, self.dead_letters, self._settings, nodes)
        self._runner.start(spark, executor, nodes)
        if nodes is not None:
            nodes.shared.start(lambda: [live.compiled for live in self if live.compiled], executor.is_for_all)

    def create(self, channel: Channel) -> None:
        """Checks a channel and takes it on; what its datasets hold already is not new to it."""
        compiled, before = self._compiler.compile(channel), self._live.get(channel.name)
        results = before.results if before else self._first_results(channel.name)
        watched = before.compiled.fresh if before and before.compiled else frozenset()
        with self._runner.held(channel.name):
            self._skip(results, compiled.fresh - watched)
            self._store.definitions.put(channel)
            self._store.set_aside.clear(channel.name)
        self._live[channel.name] = LiveChannel(channel, results, self._store.histories.of(channel.name), compiled)
        if before is not None and before.definition.terms != channel.terms:
            self._changed(channel)
        self._runner.add(compiled, results)

    def drop(self, name: str) -> None:
        """Removes a channel with its subscriptions and results."""
        name = self.find(name).definition.name
        self._runner.cancel(name)
        with self._runner.held(name):
            self._store.definitions.remove(Channel, name)
        self._runner.remove(name)
        self.subscriptions.drop(name)
        self._cache.drop(name)
        self._compiler.forget(name)
        self._dropped(name, incarnation(self._live.pop(name).history))
        self.dead_letters.forget(name)
        for folder in (self._results_folder(name), self.dead_letters.folder(name)):
            discard(folder)

    def attach(self, name: str, broker: str, values: list[dict[str, object]], asker: Asker | None = None) -> Attachment:
        """Subscribes; the first subscription of a channel sees what comes from now on.

        ``asker`` must be one who may use the channel, and has its bound parameters filled in.
        """
        channel = self._definition(name)
        if asker is not None:
            admit(channel.terms, asker, f"channel {channel.name}")
            values = [fill_in(channel.terms, asker.name, value) for value in values]
        if values and not self.subscriptions.count(channel.name):
            with self._runner.held(channel.name):
                self._skip_to_now(channel.name)
        rows = self.subscriptions.canonical(channel, values)
        bes = self.subscriptions.attach_rows(channel, broker, rows)
        if channel.name not in self._live:
            raise _gone_error(channel.name)
        return Attachment(channel, bes, rows)

    def status(self, name: str) -> Status:
        """How a channel is doing."""
        live = self._live.get(name)
        return Status("failing", live.refused, 0, 0.0) if live and live.refused else self._runner.status(name)

    def set_aside(self, name: str) -> list[Aside]:
        """The subscriptions that a channel is not executed for, and why."""
        return self._store.set_aside.of(name, time.time())

    def all_tables(self) -> Iterator[Table]:
        """The tables of results and of dead letters, for upkeep."""
        yield from (live.results.table for live in self)
        yield from self.dead_letters.tables()

    def _open(self, channels: Iterable[Channel]) -> None:
        stored = [(channel, self._results(channel.name)) for channel in channels]
        for _, results in stored:
            self._pull_back(results)
        self._lake.keep()
        self._store.histories.begin({channel.name: results.execution for channel, results in stored})
        self._store.subscriptions.begin(datetime.now(UTC))
        for channel, results in stored:
            self._live[channel.name] = LiveChannel(channel, results, self._store.histories.of(channel.name))

    def _pull_back(self, results: ChannelResults) -> None:
        """A channel has seen no more of a dataset than there is, even if the end of the dataset was set aside."""
        ahead = {
            name: table.version for name, table in self._tables.items() if results.seen_version(name) > table.version
        }
        if ahead:
            log.error(
                "a channel had seen more of a dataset than there is", channel=results.channel, datasets=sorted(ahead)
            )
            results.skip(ahead)

    def _definition(self, name: str) -> Channel:
        """The channel of that name; one that was dropped is gone, one that never was is not found."""
        try:
            return self.find(name).definition
        except NotFoundError:
            if self._store.histories.of(name):
                raise _gone_error(name) from None
            raise

    def _skip_to_now(self, name: str) -> None:
        """Unless somebody subscribed meanwhile, what there is so far is not new to the channel."""
        live = self._live.get(name)
        if live is None or self.subscriptions.count(name):
            return
        # Of a channel that is not compiled yet nobody knows what it looks at; more than that does no harm.
        self._skip(live.results, live.compiled.fresh if live.compiled else set(self._tables))

    def _skip(self, results: ChannelResults, datasets: Iterable[str]) -> None:
        """What is there so far of these is not new to a channel."""
        versions = {name: self._tables[name].version for name in datasets}
        other = {name: version for name, version in versions.items() if version != results.seen_version(name)}
        if other:
            results.skip(other)

    def _first_results(self, name: str) -> ChannelResults:
        # Left behind by a creation or a removal that did not come to its end.
        discard(self._results_folder(name))
        return self._results(name)

    def _results(self, name: str) -> ChannelResults:
        return ChannelResults(name, self._results_folder(name), self._cache)

    def _results_folder(self, name: str) -> Folder:
        return self._lake.below(RESULTS).below(name)


def _gone_error(channel: str) -> GoneError:
    return GoneError(f"channel {channel} was dropped, and its subscriptions with it")
