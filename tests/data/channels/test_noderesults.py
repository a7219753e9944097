"""What nodes have found takes the place of an execution if it is complete, holds and can be read; else nothing does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.channels.sharing import TellingSite, match_of
from tocsin.data.channels import noderesults as module
from tocsin.data.channels.noderesults import NodeResults
from tocsin.data.compiler.check import Compiled
from tocsin.data.lake.unclaimed import new_name
from tocsin.data.results import FOUND, Cache, ChannelResults
from tocsin.data.store import Store


class FoundSite(TellingSite):
    """A head with a channel, of which nodes were told, and what they have found of it."""

    def __init__(self, directory: Path, store: Store) -> None:
        super().__init__(directory, store)
        self.compiled: Compiled = self.define("OfType")
        self.subscribe("OfType", "fire", "flood")
        self.look()
        self.folder = self.lake.below("results").below("OfType")
        self.results = ChannelResults("OfType", self.folder, Cache(0))
        self.nodes = NodeResults(self.lake, self.tables, self.shared)

    def write(self, rows: dict[int, list[str]], columns: pa.Schema = FOUND) -> str:
        """A file that a node has written: rows by subscription."""
        payloads = [json.dumps([{"id": one} for one in ids], separators=(",", ":")) for ids in rows.values()]
        sizes = {"rows": [len(ids) for ids in rows.values()], "bytes": [len(payload) for payload in payloads]}
        table = pa.table({"be": list(rows), "payload": payloads, **sizes}).select(columns.names).cast(columns)
        name = new_name()
        self.folder.make()
        with self.folder.open_output(name) as sink:
            pq.write_table(table, sink)
        return name

    def put(self, *files: str) -> None:
        """A version is stored, of one batch in which a node has found what is in these files."""
        self.change("Reports")
        match = match_of(self.line.told[-1], *files)
        self.nodes.put(self.tables["Reports"], self.tables["Reports"].version, [{"OfType": match}])

    def find(self) -> dict[int, list[str]] | None:
        """What is found for each subscription; None if the channel has to be executed."""
        rows = self.nodes.find(self.compiled, self.results, "Reports", self.tables["Reports"].version)
        if rows is None:
            return None
        return {row["be"]: [one["id"] for one in json.loads(row["payload"])] for row in rows.to_pylist()}

    def left(self) -> set[str]:
        """Nodes' files that are there."""
        return {name for name in self.folder.files() if name.startswith("node-")}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FoundSite]:
    with Store(tmp_path) as store:
        yield FoundSite(tmp_path, store)


def test_what_nodes_have_found_in_all_that_is_new_is_put_together_and_its_files_are_removed(site: FoundSite) -> None:
    site.put(site.write({1: ["a"], 2: ["b"]}), site.write({1: ["c"]}))
    site.put()
    site.put(site.write({1: ["d"]}))
    assert site.find() == {1: ["a", "c", "d"], 2: ["b"]}
    assert site.left() == set()


def test_that_nothing_was_found_is_found(site: FoundSite) -> None:
    site.put()
    assert site.find() == {}


def test_what_is_not_of_all_that_is_new_is_thrown_away(site: FoundSite) -> None:
    site.put(site.write({1: ["a"]}))
    site.change("Reports")
    assert site.find() is None
    assert site.left() == set()


def test_what_does_not_hold_any_more_is_thrown_away(site: FoundSite) -> None:
    site.put(site.write({1: ["a"]}))
    site.subscribe("OfType", "storm")
    assert site.find() is None
    assert site.left() == set()


def test_what_the_channel_has_seen_is_passed_over_and_removed(site: FoundSite) -> None:
    site.put(site.write({1: ["a"]}))
    site.results.skip({"Reports": 1})
    site.put(site.write({1: ["b"]}))
    assert site.find() == {1: ["b"]}
    assert site.left() == set()


def gone(site: FoundSite, name: str) -> None:
    site.folder.delete(name)


def torn(site: FoundSite, name: str) -> None:
    site.folder.write(name, site.folder.read(name)[:-9])


def empty(site: FoundSite, name: str) -> None:
    site.folder.write(name, b"")


def nonsense(site: FoundSite, name: str) -> None:
    site.folder.write(name, b"PAR1" + bytes(100) + b"PAR1")


def rewritten(columns: dict[str, list[object]]) -> Callable[[FoundSite, str], None]:
    def rewrite(site: FoundSite, name: str) -> None:
        with site.folder.open_output(name) as sink:
            pq.write_table(pa.table(columns), sink)

    return rewrite


SPOILT: dict[str, Callable[[FoundSite, str], None]] = {
    "gone": gone,
    "torn": torn,
    "empty": empty,
    "nonsense": nonsense,
    "of other columns": rewritten({"be": [1]}),
    "of other types": rewritten({"be": ["1"], "payload": ["[]"], "rows": [1], "bytes": [2]}),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_files_that_are_not_what_they_should_be_make_an_execution(
    site: FoundSite, spoil: Callable[[FoundSite, str], None]
) -> None:
    good, bad = site.write({1: ["a"]}), site.write({2: ["b"]})
    spoil(site, bad)
    site.put(good, bad)
    assert site.find() is None
    assert site.left() == set()
    site.results.skip({"Reports": 1})
    site.put(site.write({1: ["c"]}))
    assert site.find() == {1: ["c"]}


def test_a_file_with_a_hole_makes_an_execution(site: FoundSite) -> None:
    name = site.write({1: ["a"]})
    with site.folder.open_output(name) as sink:
        pq.write_table(pa.table({"be": [None], "payload": ["[]"], "rows": [1], "bytes": [2]}).cast(FOUND), sink)
    site.put(name)
    assert site.find() is None


def test_a_file_that_is_too_large_is_not_read(site: FoundSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put(site.write({1: ["a"]}))
    monkeypatch.setattr(module, "RESULT_BYTES", 10)
    monkeypatch.setattr(type(site.folder), "read", never)
    assert site.find() is None
    assert site.left() == set()


def test_files_that_are_too_large_together_are_not_read(site: FoundSite, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [site.write({1: [f"a{number}"]}) for number in range(3)]
    largest = sum(file.size for name, file in site.folder.files().items() if name in names)
    for name in names:
        site.put(name)
    monkeypatch.setattr(module, "MOST_BYTES", largest - 1)
    monkeypatch.setattr(type(site.folder), "read", never)
    assert site.find() is None
    assert site.left() == set()


def test_what_is_large_only_when_it_is_read_is_not_taken(site: FoundSite, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [site.write({be: ["a" * 1000] for be in range(1, 100)}) for _ in range(3)]
    sizes = [file.size for name, file in site.folder.files().items() if name in names]
    monkeypatch.setattr(module, "MOST_BYTES", sum(sizes) + 100)
    site.put(*names)
    assert site.find() is None
    assert site.left() == set()


def never(*_: object) -> bytes:
    raise AssertionError("it is not to be read")
