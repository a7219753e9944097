"""What a node finds of channels in its batch is what the head would find, or nothing; the batch is none the worse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from tests.data.nodes.matching import LIKED, OVER, PATIENT, SHARES, MatchingSite
from tests.data.nodes.sharing import on_spark
from tests.waiting import until
from tocsin.data.nodes import files, results
from tocsin.data.nodes import matching as module
from tocsin.data.nodes.files import FileKind, NodeFile
from tocsin.data.nodes.processing import ProcessedBatch, SliceProcessing
from tocsin.data.nodes.results import ResultFile, ResultWriter
from tocsin.data.store import Store
from tocsin.errors import UnavailableError

pytestmark = pytest.mark.spark


@pytest.fixture
def site(spark: SparkSession, tmp_path: Path) -> Iterator[MatchingSite]:
    with Store(tmp_path) as store:
        site = MatchingSite(spark, tmp_path, store)
        yield site
        site.close()


Node = Callable[..., SliceProcessing]


@pytest.fixture(params=["here", "executors"])
def node(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Node]:
    """Makes nodes, whose ways to write must not differ in anything that can be seen."""
    made: list[SliceProcessing] = []

    def make(site: MatchingSite, name: str = "a") -> SliceProcessing:
        made.append(on_spark(spark, site, name, request.param == "executors"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def publish(site: MatchingSite, *values: int, first: int = 0) -> None:
    site.publish(*({"id": f"r{first + number}", "value": value} for number, value in enumerate(values)))


def offered(batch: ProcessedBatch) -> dict[str, list[NodeFile]]:
    """What a batch has of each channel."""
    found: dict[str, list[NodeFile]] = {}
    for file in map(files.decode, batch.files):
        if file.match is not None:
            assert file.kind is FileKind.RESULTS
            found.setdefault(file.match.channel, []).append(file)
    return found


def stored(site: MatchingSite, node: SliceProcessing, *values: int, first: int = 0) -> dict[str, list[NodeFile]]:
    """Publishes, has a node process it, and the head commit it; what the batch has of each channel."""
    publish(site, *values, first=first)
    batch = node.process(site.starts())
    site.commit(batch)
    return offered(batch)


def test_what_a_node_finds_is_what_the_head_finds(site: MatchingSite, node: Node) -> None:
    site.define(OVER, {"least": 3}, {"least": 5}, {"least": 50})
    site.define(LIKED, {"who": "ann"}, {"who": "bob"})
    site.change_people(ann=3, bob=7)
    one, other = node(site, "a"), node(site, "b")
    site.teach(one, other)
    publish(site, *range(10))
    # Two nodes with two slices each, in one commit; then one that has all, in another.
    site.commit(one.process(site.starts(0, 1)), other.process(site.starts(2, 3)))
    stored(site, one, 3, 7, 60, first=10)
    for name in ("Over", "Liked"):
        expected = site.peek(name)
        assert expected
        assert site.take(name) == expected
        assert site.left(name) == set()


def test_that_nothing_was_found_is_told_too(site: MatchingSite, node: Node) -> None:
    site.define(OVER, {"least": 50})
    one = node(site)
    site.teach(one)
    [told] = stored(site, one, 1, 2)["Over"]
    assert (told.path, told.size, told.rows) == ("", 0, 0)
    assert site.take("Over") == []


def test_what_is_told_anew_is_used_with_the_next_batch(site: MatchingSite, node: Node) -> None:
    [first] = site.define(LIKED, {"who": "ann"})
    site.change_people(ann=1)
    one = node(site)
    site.teach(one)
    stored(site, one, 1)
    assert site.take("Liked") == [(first, '{"id": "r0", "likes": 1}')]
    site.change_people(ann=2)
    [second] = site.subscribe("Liked", {"who": "bob"})
    site.change_people(bob=3)
    site.teach(one)
    stored(site, one, 1, 2, 3, first=10)
    assert site.take("Liked") == [(first, '{"id": "r11", "likes": 2}'), (second, '{"id": "r12", "likes": 3}')]
    site.subscriptions.detach("b", [first])
    site.teach(one)
    stored(site, one, 1, 2, 3, first=20)
    assert site.take("Liked") == [(second, '{"id": "r22", "likes": 3}')]
    # Also where most of them are in the base.
    site.subscriptions.rebase("Liked")
    site.subscribe("Liked", {"who": "ann"})
    site.teach(one)
    stored(site, one, 1, 2, 3, first=30)
    assert len(site.take("Liked") or []) == 2


def test_who_was_not_told_of_a_change_has_found_what_does_not_count(site: MatchingSite, node: Node) -> None:
    site.define(LIKED, {"who": "ann"})
    site.change_people(ann=1)
    one = node(site)
    site.teach(one)
    site.change_people(ann=2)
    assert stored(site, one, 1, 2)["Liked"]
    assert site.take("Liked") is None
    assert site.left("Liked") == set()
    assert [row for _, row in site.execute("Liked")] == ['{"id": "r1", "likes": 2}']


def test_what_fails_is_left_to_the_head_and_the_others_are_found(site: MatchingSite, node: Node) -> None:
    site.define(OVER, {"least": 0})
    site.define(SHARES, {"whole": 12})
    one = node(site)
    site.teach(one)
    assert stored(site, one, 0, 1).keys() == {"Over"}
    assert site.take("Shares") is None
    assert len(site.take("Over") or []) == 2
    # It rests, though it could be matched now.
    assert stored(site, one, 1, first=10).keys() == {"Over"}


def test_too_much_is_left_to_the_head_and_nothing_of_it_stays(
    site: MatchingSite, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.define(OVER, {"least": 0})
    one = node(site)
    site.teach(one)
    monkeypatch.setattr(results, "RESULT_BYTES", 10)
    assert stored(site, one, 1, 2) == {}
    assert site.rows() == {"r0": 1, "r1": 2}
    assert (site.take("Over"), site.left("Over")) == (None, set())


def test_more_files_than_the_head_takes_are_left_out_with_their_channels(
    site: MatchingSite, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.define(OVER, {"least": 0})
    site.define(SHARES, {"whole": 12})
    one = node(site)
    site.teach(one)
    monkeypatch.setattr(module, "MOST_FILES", 1)
    assert stored(site, one, 1).keys() == {"Over"}
    assert (site.take("Shares"), site.left("Shares")) == (None, set())
    assert len(site.take("Over") or []) == 1
    # What does not fit rests, so that it is not computed for nothing each time.
    monkeypatch.undo()
    assert stored(site, one, 1, first=10).keys() == {"Over"}


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Channels take as long as the test wants: until this is set."""
    going_on = threading.Event()
    compute = ResultWriter.compute

    def wait_and_compute(self: ResultWriter, found: DataFrame, by_executors: bool) -> list[ResultFile]:
        assert going_on.wait(60)
        return compute(self, found, by_executors)

    monkeypatch.setattr(ResultWriter, "compute", wait_and_compute)
    yield going_on
    going_on.set()


def test_a_slow_channel_is_waited_for_only_so_long(site: MatchingSite, node: Node, stalled: threading.Event) -> None:
    site.matching = replace(PATIENT, seconds=0.2)
    site.open()
    site.tables["Reports"] = site.table
    site.define(OVER, {"least": 0})
    one = node(site)
    site.teach(one)
    assert stored(site, one, 1, 2) == {}
    assert site.rows() == {"r0": 1, "r1": 2}
    assert site.take("Over") is None
    # What it finds when nobody waits any more is removed.
    stalled.set()
    one.close()
    assert site.left("Over") == set()


def test_a_batch_that_fails_is_no_channels_fault(
    site: MatchingSite, node: Node, stalled: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.define(OVER, {"least": 0})
    one = node(site)
    site.teach(one)
    publish(site, 1, 2)
    with monkeypatch.context() as patched:
        refuse_after_matching_began(one, patched)
        with pytest.raises(UnavailableError):
            one.process(site.starts())
    stalled.set()
    # As soon as what was begun is over, it is matched again.
    until(lambda: not one._matching._busy)
    assert site.left("Over") == set()
    batch = one.process(site.starts())
    site.commit(batch)
    assert len(offered(batch)["Over"]) == 1
    assert len(site.take("Over") or []) == 2


def refuse_after_matching_began(node: SliceProcessing, patched: pytest.MonkeyPatch) -> None:
    begin = node._matching.begin

    def begin_and_refuse(*args: Any) -> None:
        begin(*args)
        raise RuntimeError("the disk is away")

    patched.setattr(node._matching, "begin", begin_and_refuse)


@pytest.mark.parametrize("gone", ["subscriptions", "base", "dataset"])
def test_files_that_are_gone_are_nobodys_fault_and_what_is_told_next_is_used(
    site: MatchingSite, node: Node, gone: str
) -> None:
    [ann] = site.define(LIKED, {"who": "ann"})
    site.change_people(ann=1)
    site.subscriptions.rebase("Liked")
    site.subscribe("Liked", {"who": "bob"})
    one = node(site)
    site.teach(one)
    told = site.tellings["Liked"]
    base = told.subscriptions.base
    assert base is not None
    # As a node finds it that hears late of what has come in its place.
    missing = {
        "subscriptions": replace(told.subscriptions, generation=1000, added="1-1000-added.parquet"),
        "base": replace(told.subscriptions, generation=1000, base=f"{base}-gone"),
        "dataset": told.subscriptions,
    }[gone]
    whole = [replace(each, files=[f"{path}-gone" for path in each.files]) for each in told.whole]
    late = replace(told, tag="1.1000", subscriptions=missing, whole=whole if gone == "dataset" else told.whole)
    one.learn([late])
    assert stored(site, one, 1) == {}
    assert site.take("Liked") is None
    assert site.execute("Liked") == [(ann, '{"id": "r0", "likes": 1}')]
    # It is not tried in vain again,
    assert not one._matching._choose(0.0)
    # and does not rest, either.
    one.learn([told])
    assert stored(site, one, 1, first=10)["Liked"]
    assert site.take("Liked") == [(ann, '{"id": "r10", "likes": 1}')]


def test_a_dataset_whose_files_vanish_after_they_were_first_read_is_nobodys_fault(
    site: MatchingSite, node: Node
) -> None:
    site.define(LIKED, {"who": "ann"})
    site.change_people(ann=1)
    one = node(site)
    site.teach(one)
    assert stored(site, one, 1)["Liked"]
    for path in site.people.snapshot.paths():
        Path(path.removeprefix("file://")).unlink()
    assert stored(site, one, 1, first=10) == {}
    site.people.overwrite(site.people.schema.empty_table().drop_columns("_v"), {})
    site.teach(one)
    assert stored(site, one, 1, first=20)["Liked"]


def test_batches_that_are_large_are_not_matched(site: MatchingSite, node: Node) -> None:
    site.matching = replace(PATIENT, rows_bytes=100)
    site.open()
    site.define(OVER, {"least": 0})
    one = node(site)
    site.teach(one)
    assert stored(site, one, *range(200)) == {}
    assert len(site.rows()) == 200


def test_channels_that_are_no_more_are_matched_no_more_and_nothing_is_kept_for_them(
    site: MatchingSite, node: Node, spark: SparkSession
) -> None:
    site.define(OVER, {"least": 0})
    site.define(LIKED, {"who": "ann"})
    site.change_people(ann=1)
    before = views(spark)
    one = node(site)
    site.teach(one)
    assert stored(site, one, 1).keys() == {"Over", "Liked"}
    one.learn([site.tellings["Over"]])
    assert stored(site, one, 1, first=10).keys() == {"Over"}
    one.close()
    assert views(spark) == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("matching")]
    # What comes late is passed over.
    one.learn(site.tellings.values())
    assert one.channels == []


class GoneSpark:
    """Spark when its process has ended."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionRefusedError(f"nobody answers to {name}")


def test_a_node_whose_spark_has_ended_can_be_closed(site: MatchingSite, node: Node) -> None:
    site.define(OVER, {"least": 0})
    one = node(site)
    site.teach(one)
    assert stored(site, one, 1)["Over"]
    with pytest.MonkeyPatch.context() as patched:
        for part in (one._matching, one._matching._relations, one._matching._relations._subscribed):
            patched.setattr(part, "_spark", GoneSpark())
        one.close()
    assert one.channels == []


def views(spark: SparkSession) -> set[str]:
    return {table.name for table in spark.catalog.listTables() if table.isTemporary}


def test_results_of_a_batch_that_was_refused_are_removed(site: MatchingSite, node: Node) -> None:
    site.define(OVER, {"least": 0})
    one = node(site)
    site.teach(one)
    publish(site, 1, 2)
    batch = one.process(site.starts())
    assert site.left("Over")
    one.discard(batch.files)
    assert site.left("Over") == set()
