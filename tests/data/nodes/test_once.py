"""Each record is in the dataset once, whatever becomes of nodes, their batches, the slices and the head."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.data.nodes.sharing import PlainProcessing, Sharing, on_spark
from tests.examples import examples
from tocsin.data.lake.folder import Folder
from tocsin.data.nodes.processing import ProcessedBatch, SliceProcessing
from tocsin.errors import UnavailableError

STEPS = ("publish", "publish", "process", "process", "commit", "commit", "refuse", "move", "restart", "tidy", "head")


class Nodes:
    """Nodes that share a feed, driven as their cores would drive them; each step is chosen by chance."""

    def __init__(self, sharing: Sharing, chance: Random, spark: SparkSession | None = None) -> None:
        self.sharing, self.chance, self._spark = sharing, chance, spark
        self.nodes: dict[str, SliceProcessing] = {name: self._node(name) for name in "ab"}
        self.owner = {index: chance.choice("ab") for index in range(sharing.feed.slices)}
        self.position = sharing.starts()
        self.waiting: dict[str, list[ProcessedBatch]] = {"a": [], "b": []}
        self.expected: dict[str, int] = {}
        self._number = 0

    def step(self, name: str) -> None:
        getattr(self, name)(self.chance.choice("ab"))

    def publish(self, _: str) -> None:
        """Some records, of ids of which there are few."""
        for _turn in range(self.chance.randrange(1, 6)):
            self._number += 1
            name = f"r{self.chance.randrange(40)}"
            self.sharing.publish({"id": name, "value": self._number})
            self.expected.setdefault(name, self._number)

    def process(self, node: str) -> bool:
        """Whether there was something to do."""
        starts = {index: self.position[index] for index, owner in self.owner.items() if owner == node}
        try:
            batch = self.nodes[node].process(starts)
        except UnavailableError:
            # It is still being committed; a core tries again.
            return False
        if batch.parts and self.chance.random() < 0.1:
            self.nodes[node].discard(batch.files)
            return True
        for part in batch.parts:
            self.position[part.slice] = part.end
        self.waiting[node] += [batch] if batch.parts else []
        return bool(batch.parts)

    def commit(self, node: str) -> None:
        """The oldest that waits, of this node or of both."""
        both = self.chance.random() < 0.3
        batches = [self.waiting[each].pop(0) for each in ("ab" if both else node) if self.waiting[each]]
        if batches:
            self.sharing.commit(*batches)

    def refuse(self, node: str) -> None:
        """Nothing that waits counts."""
        for batch in self.waiting[node]:
            for part in batch.parts:
                self.position[part.slice] = self.sharing.store.markers()[part.slice]
        self.waiting[node] = []

    def move(self, node: str) -> None:
        """A slice goes to a node; what its giver has of it does not count."""
        index = self.chance.randrange(self.sharing.feed.slices)
        giver = self.owner[index]
        self.refuse(giver)
        self.nodes[giver].forget([index])
        self.nodes[node].prepare([index])
        self.owner[index] = node

    def restart(self, node: str) -> None:
        """The node's process is another."""
        self.refuse(node)
        self.nodes[node] = self._node(node)

    def tidy(self, _: str) -> None:
        self.sharing.table.compact()
        self.sharing.table.vacuum(0)

    def head(self, _: str) -> None:
        """The head's process is another; who has what in hand goes on."""
        self.sharing.open()

    def finish(self) -> None:
        for node in "ab":
            while self.process(node) or self.waiting[node]:
                while self.waiting[node]:
                    self.sharing.commit(self.waiting[node].pop(0))

    def _node(self, name: str) -> SliceProcessing:
        if self._spark is None:
            return PlainProcessing(self.sharing.shared, self.sharing.directory / f"ids-{name}")
        return on_spark(self._spark, self.sharing, name, by_executors=name == "b")


@contextmanager
def shared() -> Iterator[Sharing]:
    with tempfile.TemporaryDirectory() as place:
        sharing = Sharing(Path(place), max_batch_bytes=200)
        yield sharing
        sharing.log.close()


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(STEPS), max_size=40), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_each_record_is_stored_once_and_the_first_of_an_id_counts(steps: list[str], chance: Random) -> None:
    with shared() as sharing:
        nodes = Nodes(sharing, chance)
        for step in steps:
            nodes.step(step)
        nodes.finish()
        assert sharing.rows() == nodes.expected
        assert sharing.store.markers() == sharing.log.ends()


@pytest.mark.s3
@pytest.mark.parametrize("lake", ["s3"], indirect=True)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_holds_in_s3(lake: Folder, tmp_path: Path, seed: int) -> None:
    sharing, chance = Sharing(tmp_path, max_batch_bytes=200, lake=lake), Random(seed)
    nodes = Nodes(sharing, chance)
    for _ in range(40):
        nodes.step(chance.choice(STEPS))
    nodes.finish()
    assert sharing.rows() == nodes.expected
    assert sharing.store.markers() == sharing.log.ends()
    sharing.log.close()


@pytest.mark.spark
def test_the_same_holds_on_spark_here_and_by_executors(spark: SparkSession, tmp_path: Path, lake: Folder) -> None:
    sharing = Sharing(tmp_path, lake=lake)
    chance = Random(7)
    nodes = Nodes(sharing, chance, spark)
    for _ in range(12):
        nodes.step(chance.choice(STEPS))
    nodes.publish("a")
    nodes.finish()
    assert sharing.rows() == nodes.expected
    assert sharing.store.markers() == sharing.log.ends()
    sharing.log.close()
