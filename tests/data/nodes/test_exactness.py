"""Whatever happens between batches, subscribers are told what the head would have found, once, whoever found it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.data.nodes.matching import LIKED, OVER, MatchingSite
from tests.data.nodes.sharing import on_spark
from tocsin.data.channels.matches import MatchedVersions, Matches
from tocsin.data.channels.shared import SharedChannels, Telling
from tocsin.data.nodes import storing
from tocsin.data.nodes.files import NodeFile
from tocsin.data.nodes.processing import ProcessedBatch, SliceProcessing
from tocsin.data.store import Store

pytestmark = pytest.mark.spark

SEEDS: Final = range(3)
_ROUNDS: Final = 12
_WHO: Final = ("ann", "bob", "cid")
_CHANNELS: Final = ("Over", "Liked")
_KINDS: Final = 3
# What happens before a batch and, as often, between the batch and its commit.
_TROUBLE: Final = {"nothing": 6, "change": 3, "subscribe": 1, "leave": 1, "set aside": 1}


class WrongError(Exception):
    """Somebody was told what they should not have been, or not told what they should."""


@dataclass
class Record:
    """A record, and how many times People had changed when a node read it."""

    value: int
    changes: int
    seen: set[str] = field(default_factory=set)


class Schedule:
    """Two nodes and a head, to whom things happen in a random order; it knows what everybody must be told.

    A node may have used what People were when it began to match, or later. So there may be several right answers for a
    record, one for each state of People from then to the execution.
    """

    def __init__(self, site: MatchingSite, nodes: Sequence[SliceProcessing], seed: int) -> None:
        self._site, self._nodes, self._chance = site, nodes, Random(seed)
        self._pending: list[ProcessedBatch] = []
        self._read: dict[str, Record] = {}
        self._stored: dict[str, Record] = {}
        self._people: list[dict[str, int]] = [{}]
        self._aside: set[int] = set()
        self._bes: dict[str, dict[int, object]] = {name: {} for name in _CHANNELS}
        self.by_nodes: Counter[bool] = Counter()
        # These stay.
        self._note("Over", site.define(OVER, {"least": 0}), [0])
        self._note("Liked", site.define(LIKED, *({"who": who} for who in _WHO)), _WHO)
        for who in _WHO:
            self._change(who)

    def run(self) -> None:
        """Lets everything happen. Raises WrongError."""
        self._site.teach(*self._nodes)
        for _ in range(_ROUNDS):
            self._teach()
            self._trouble()
            self._process()
            self._trouble()
            self._commit()
            if self._chance.random() < 0.8:
                self._execute()
        self._execute()

    def _teach(self) -> None:
        """Nodes are told what there is now, or some of them are, or one is told that there is nothing to match."""
        roll = self._chance.random()
        if roll < 0.7:
            self._site.teach(*self._nodes)
        elif roll < 0.8:
            self._site.teach(self._chance.choice(self._nodes))
        elif roll < 0.9:
            self._chance.choice(self._nodes).learn([])

    def _trouble(self) -> None:
        [what] = self._chance.choices(list(_TROUBLE), list(_TROUBLE.values()))
        match what:
            case "subscribe":
                self._subscribe()
            case "leave" | "set aside":
                self._lose(what)
            case "change":
                self._change(self._chance.choice(_WHO))

    def _process(self) -> None:
        values = [self._chance.randrange(_KINDS) for _ in range(self._chance.randint(2, 4))]
        new = {f"r{len(self._read) + number}": value for number, value in enumerate(values)}
        self._site.publish(*({"id": name, "value": value} for name, value in new.items()))
        self._read |= {name: Record(value, len(self._people) - 1) for name, value in new.items()}
        if self._chance.random() < 0.5:
            self._pending = [self._chance.choice(self._nodes).process(self._site.starts())]
        else:
            halves = ((0, 1), (2, 3))
            self._pending = [
                node.process(self._site.starts(*half)) for node, half in zip(self._nodes, halves, strict=True)
            ]

    def _commit(self) -> None:
        self._site.commit(*(batch for batch in self._pending if batch.parts))
        self._stored = dict(self._read)

    def _subscribe(self) -> None:
        least = -self._chance.randrange(1000)
        self._note("Over", self._site.subscribe("Over", {"least": least}), [least])

    def _lose(self, how: str) -> None:
        others = sorted(self._bes["Over"])[1:]
        if not others:
            return
        be = self._chance.choice(others)
        if how == "leave":
            self._site.subscriptions.detach("b", [be])
            del self._bes["Over"][be]
        else:
            self._site.set_aside("Over", be)
            self._aside.add(be)

    def _change(self, who: str) -> None:
        before = self._people[-1].get(who, 0)
        likes = {who: (before + self._chance.randint(1, _KINDS - 1)) % _KINDS}
        self._site.change_people(**likes)
        self._people.append(self._people[-1] | likes)

    def _execute(self) -> None:
        for name in _CHANNELS:
            new = {id_: record for id_, record in self._stored.items() if name not in record.seen}
            if new:
                found, by_nodes = self._site.execute_or_adopt(name)
                self.by_nodes[by_nodes] += 1
                self._judge(name, Counter((be, json.loads(row)["id"]) for be, row in found), new)

    def _judge(self, name: str, told: Counter[tuple[int, str]], new: Mapping[str, Record]) -> None:
        for record in new.values():
            record.seen.add(name)
        for be, value in self._bes[name].items():
            for id_, record in new.items():
                times = told.pop((be, id_), 0)
                if times not in self._right(name, be, value, record):
                    raise WrongError(f"{name} tells {be} ({value}) of {id_} ({record}) {times} times")
        if told:
            raise WrongError(f"{name} tells {told}, which is not new, or to somebody who is not there")

    def _right(self, name: str, be: int, value: object, record: Record) -> set[int]:
        """How many times a subscription may be told of a record."""
        if be in self._aside:
            return {0}
        if name == "Over":
            return {int(record.value >= int(str(value)))}
        return {int(people.get(str(value)) == record.value) for people in self._people[record.changes :]}

    def _note(self, name: str, bes: Sequence[int], values: Sequence[object]) -> None:
        self._bes[name] |= dict(zip(bes, values, strict=True))


@contextmanager
def schedule(spark: SparkSession, directory: Path, seed: int) -> Iterator[Schedule]:
    directory.mkdir()
    with Store(directory) as store:
        site = MatchingSite(spark, directory, store)
        nodes = [on_spark(spark, site, "a"), on_spark(spark, site, "b", by_executors=True)]
        try:
            yield Schedule(site, nodes, seed)
        finally:
            for node in nodes:
                node.close()
            site.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_is_told_what_the_head_would_have_found_once(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    with schedule(spark, tmp_path / "site", seed) as made:
        made.run()
        # Else there is nothing that was tested.
        assert made.by_nodes[True] > 0
        assert made.by_nodes[False] > 0


def take_anything(self: Matches, channel: str, table: object, since: int, until: int) -> MatchedVersions:
    """A mistake: what is there is taken for complete."""
    return replace(_TAKE(self, channel, table, since, until), complete=True)


def began_long_ago(batch: Sequence[NodeFile], now: float) -> Mapping[str, object]:
    """A mistake: it is not looked at when a node began to match."""
    return {name: replace(match, began=0.0) for name, match in _MATCHES(batch, now).items()}


_TAKE: Final = Matches.take
_MATCHES: Final = storing._matches
MUTANTS: Final[dict[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "nothing is required": lambda patch: patch.setattr(SharedChannels, "require", lambda *_: None),
    "always complete": lambda patch: patch.setattr(Matches, "take", take_anything),
    "age ignored": lambda patch: patch.setattr(storing, "_matches", began_long_ago),
    "for any subscriptions": lambda patch: patch.setattr(Telling, "is_for", lambda *_: True),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS)
def test_mistakes_are_found(
    spark: SparkSession,
    tmp_path: Path,
    mutate: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch)
    assert any(goes_wrong(spark, tmp_path / str(seed), seed) for seed in SEEDS)


def goes_wrong(spark: SparkSession, directory: Path, seed: int) -> bool:
    with schedule(spark, directory, seed) as made:
        try:
            made.run()
        except WrongError:
            return True
    return False
