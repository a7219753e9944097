"""The benchmark of matching: everybody matches the same, and who does not is found out."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.cli.program import Program
from tocsin.apps.stocks.interests import draw_interest
from tocsin.apps.stocks.quotes import Quotes, make_quotes
from tocsin.bench.content.contestant import Contestant, Entry
from tocsin.bench.content.peers import a_tree, find_peers
from tocsin.bench.content.peers.padres import compile_harness
from tocsin.bench.content.suite import NAIVE, POSET, TOCSIN, Bench, Say
from tocsin.bench.content.worker import MATCHERS
from tocsin.bench.content.workload import (
    PUBLICATIONS,
    conditions,
    read_publications,
    read_subscriptions,
    write_workload,
)
from tocsin.bench.report import Figure
from tocsin.content.filter import conjunction
from tocsin.content.language import parse
from tocsin.content.predicate import Predicate
from tocsin.errors import InvalidError, UnavailableError

SIZE = 60


@pytest.fixture
def tocsin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(monkeypatch, capsys)


@pytest.fixture(scope="module")
def quotes() -> Quotes:
    return make_quotes(1, symbols=4, days=30)


@pytest.fixture(autouse=True)
def _few_publications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.bench.content.suite._CHECKED", 5)


def _run(
    quotes: Quotes, sizes: Sequence[int], peers: Sequence[Entry] = (), limit: float = 60, note: Say = lambda _: None
) -> list[Figure]:
    bench = Bench(turns=1, seconds=0, limit=limit, say=lambda _: None, note=note)
    return list(bench.run(sizes, quotes, 1, lambda *_: peers))


def _script(tmp_path: Path, first: str, answers: str) -> Entry:
    """A program that says something, and answers whatever it is told."""
    script = tmp_path / "peer.py"
    script.write_text(f"import sys\nprint({first!r}, flush=True)\nfor _ in sys.stdin: print({answers!r}, flush=True)\n")
    return Entry("peer", [sys.executable, str(script)])


def test_the_files_say_what_was_drawn(tmp_path: Path, quotes: Quotes) -> None:
    workload = write_workload(tmp_path, quotes, SIZE, 7)
    random, every = Random(7), [quote for each in quotes.by_symbol.values() for quote in each]
    drawn = [random.choice(quotes.by_symbol[random.choice(quotes.symbols)]) for _ in range(PUBLICATIONS)]
    assert read_publications(workload.publications) == drawn
    assert all(quote in every for quote in drawn)
    filters = [draw_interest(random, quotes) for _ in range(SIZE)]
    assert list(read_subscriptions(workload.subscriptions, SIZE)) == filters
    assert list(read_subscriptions(workload.subscriptions, 3)) == filters[:3]


def test_the_condition_that_the_fewest_fulfil_is_written_first(tmp_path: Path, quotes: Quotes) -> None:
    workload = write_workload(tmp_path, quotes, SIZE, 7)
    for line in workload.subscriptions.read_text().splitlines():
        names = line.split("\t")[::4]
        assert names[-1] == "class"
        assert "symbol" not in names[1:]


@pytest.mark.parametrize(
    "text", ["a = 'x'", "a > 1", "a >= 1.5", "a < -2", "a <= 3", "a > 1 and a <= 3", "a = 5 and b < 'y'"]
)
def test_conditions_are_all_that_a_filter_asks_for(text: str) -> None:
    filter = parse(text)
    assert conjunction(Predicate(name, operator, (value,)) for name, operator, value in conditions(filter)) == filter


def test_quotes_that_the_files_cannot_hold_are_refused(tmp_path: Path) -> None:
    odd = Quotes({"A\tB": [{"class": "STOCK", "symbol": "A\tB", "high": 1.0, "low": 0.5, "volume": 2.0}]})
    with pytest.raises(InvalidError, match="tabs, line ends or quotation marks"):
        write_workload(tmp_path, odd, 3, 1)


def test_all_of_ours_match_the_same(quotes: Quotes) -> None:
    random = Random(3)
    filters = [draw_interest(random, quotes) for _ in range(SIZE)]
    matchers = [make() for make in MATCHERS.values()]
    for matcher in matchers:
        for number, filter in enumerate(filters):
            matcher.add(number, filter)
    for publication in quotes.by_symbol[quotes.symbols[0]]:
        expected = [number for number, filter in enumerate(filters) if filter.matches(publication)]
        for matcher in matchers:
            assert sorted(matcher.match(publication).tolist()) == expected


@pytest.mark.process
def test_every_size_is_measured_beside_the_naive_scan(quotes: Quotes) -> None:
    figures = _run(quotes, [SIZE, 2 * SIZE])
    groups = [f"{size} subscriptions: {what}" for size in (60, 120) for what in ("matching", "insertion", "memory")]
    assert list(dict.fromkeys(figure.group for figure in figures)) == groups
    for group in groups:
        names = {figure.name for figure in figures if figure.group == group}
        assert {TOCSIN.name, POSET.name} <= names
        assert (NAIVE.name in names) == ("insertion" not in group)
    [naive] = [figure for figure in figures if figure.group == groups[0] and figure.name == NAIVE.name]
    [ours] = [figure for figure in figures if figure.group == groups[0] and figure.baseline == NAIVE.name]
    assert ours.ratio == pytest.approx(ours.value / naive.value)
    assert all(figure.met is None for figure in figures)


@pytest.mark.process
def test_targets_are_judged_where_there_are_some(quotes: Quotes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.bench.content.suite._LEAST", {SIZE: 1e12})
    monkeypatch.setattr("tocsin.bench.content.suite._TIMES_NAIVE", {SIZE: 1e-12})
    judged = {figure.target: figure.met for figure in _run(quotes, [SIZE]) if figure.target}
    assert judged == {"at least 1,000,000,000,000": False, "at least 1e-12×": True}


@pytest.mark.process
def test_a_peer_that_matches_something_else_is_an_error(tmp_path: Path, quotes: Quotes) -> None:
    wrong = _script(tmp_path, f"{SIZE} 1.0 1000", "99")
    with pytest.raises(UnavailableError, match=r"by peer: .* 1 are too many \[99\]"):
        _run(quotes, [SIZE], [wrong])


@pytest.mark.process
def test_who_gives_up_inserting_is_left_out_of_the_matching_and_says_how_far_it_came(
    tmp_path: Path, quotes: Quotes
) -> None:
    notes: list[str] = []
    slow = _script(tmp_path, "20 2.0 1000", "never asked")
    figures = _run(quotes, [SIZE], [slow], limit=1.5, note=notes.append)
    assert notes == ["peer has inserted 20 of 60 subscriptions in 1.5 s, and is left out of the matching"]
    theirs = {figure.group: figure for figure in figures if figure.name.startswith("peer")}
    assert {figure.name for figure in theirs.values()} == {"peer, the first 20"}
    assert theirs["60 subscriptions: insertion"].value == pytest.approx(1e5)
    assert theirs["60 subscriptions: memory"].value == pytest.approx(50)


@pytest.mark.process
def test_one_of_ours_gives_up_when_the_time_is_up(tmp_path: Path, quotes: Quotes) -> None:
    workload = write_workload(tmp_path, quotes, SIZE, 1)
    with Contestant(POSET, workload, SIZE, 0.0, tmp_path / "log") as contestant:
        assert contestant.await_inserted().subscriptions == 0


@pytest.mark.process
def test_a_contestant_that_ends_is_told_with_its_last_words(tmp_path: Path, quotes: Quotes) -> None:
    workload = write_workload(tmp_path, quotes, SIZE, 1)
    entry = Entry("peer", [sys.executable, "-c", "raise SystemExit('no memory left')"])
    with (
        pytest.raises(UnavailableError, match="peer ended: no memory left"),
        Contestant(entry, workload, SIZE, 1.0, tmp_path / "log") as contestant,
    ):
        contestant.await_inserted()


@pytest.mark.process
def test_a_contestant_matches_what_the_engine_matches(tmp_path: Path, quotes: Quotes) -> None:
    workload = write_workload(tmp_path, quotes, SIZE, 1)
    publications = read_publications(workload.publications)
    filters = list(read_subscriptions(workload.subscriptions, SIZE))
    with Contestant(TOCSIN, workload, SIZE, 60.0, tmp_path / "log") as contestant:
        assert contestant.await_inserted().subscriptions == SIZE
        for at in (0, 5):
            expected = [number for number, filter in enumerate(filters) if filter.matches(publications[at])]
            assert np.array_equal(contestant.match(at), expected)
        assert contestant.turn(0.0) > 0


def test_peers_that_cannot_be_had_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    notes: list[str] = []
    assert list(find_peers(None, tmp_path, notes.append)) == []
    assert notes == [
        "PADRES is left out: --padres says where it is built",
        "a-tree is left out: cargo, which builds it, is not installed",
    ]


@pytest.mark.process
def test_a_tree_that_cargo_does_not_build_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cargo = tmp_path / "bin" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text("#!/bin/sh\necho 'error: no such crate' >&2\nexit 101\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UnavailableError, match=r"does not build it in .*: error: no such crate"):
        a_tree.build()
    assert {path.name for path in (tmp_path / "cache/tocsin/bench/a-tree").iterdir()} == {"Cargo.toml", "a_tree.rs"}


def test_a_padres_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="--padres takes the jar of PADRES"):
        compile_harness(tmp_path / "padres.jar", tmp_path)


@pytest.mark.process
def test_figures_are_printed_as_lines_of_json(tocsin: Program) -> None:
    arguments = ["--sizes", "50", "--turns", "1", "--seconds", "0", "--no-peers", "--json"]
    ended = tocsin("bench", "content", *arguments)
    assert ended.status == 0, ended.err
    figures = [json.loads(line) for line in ended.out.splitlines()]
    assert {figure["name"] for figure in figures} == {"Tocsin", "naive scan", "poset", "matches of a publication"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "0"], "--sizes 0: there is nothing to measure without subscriptions"),
        (["--sizes", "few"], "'few' is not a list of whole numbers; write them as 1,2,3"),
    ],
)
def test_what_makes_no_sense_is_not_measured(tocsin: Program, arguments: list[str], message: str) -> None:
    refused = tocsin("bench", "content", *arguments)
    assert refused.status == 1
    assert refused.err.startswith(f"error: {message}")
