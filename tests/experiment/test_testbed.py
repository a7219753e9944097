from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.cli.program import Program
from tests.experiment.courses import course, steady
from tocsin.apps.emergency import World
from tocsin.data.language.forms import CreateChannel
from tocsin.data.language.parser import parse
from tocsin.errors import InvalidError
from tocsin.experiment.directory import Directory
from tocsin.experiment.schemes import scheme
from tocsin.experiment.series.course import RunKey
from tocsin.experiment.series.rows import LoadRow
from tocsin.experiment.study import StudyData
from tocsin.experiment.testbed import claims
from tocsin.experiment.testbed.bed import Bed
from tocsin.experiment.testbed.rows import RunSummary
from tocsin.experiment.testbed.soundness import sound_runs, stalled_runs
from tocsin.experiment.testbed.study import Prototype
from tocsin.experiment.verdict import Holds
from tocsin.settings.keys import KEYS

SUMMARY = RunSummary(
    placement="NR",
    scheme="LDM",
    frontend=2200,
    backend=600,
    reports=10_000,
    locations=700_000,
    notes=50_000,
    bytes=100,
    lost=0,
    repeated=0,
    troubles=0,
)


def test_compressed_time_makes_channels_run_more_often() -> None:
    periods = [
        statement.definition.period
        for statement in parse(Bed("NR", scheme("ldm"), 5, 6.0).application().decode())
        if isinstance(statement, CreateChannel)
    ]
    assert periods == [1.667, 3.333, 1.667, 1.667, 5.0, 1.667, 5.0]


@pytest.mark.parametrize("policy", ["none", "ldm", "ldm+gsh", "ours", "gsh"])
def test_what_processes_are_told_are_settings_that_exist(policy: str) -> None:
    bed = Bed("NR", scheme(policy), 5, 6.0)
    network = bed.network(Path("anywhere"))
    told = {*network.of_coordinator, *(key for one in network.of_brokers for key in one)}
    assert told - set(KEYS) == set()
    assert len(network.of_brokers) == 5


def test_the_papers_schemes_wait_for_half_of_the_settled_load_and_ours_does_not() -> None:
    schemes = Prototype()._schemes
    levels = {name: (one.thresholds.beta, one.thresholds.theta) for name, one in schemes.items() if one.thresholds}
    assert levels == {name: (25e3, 25e3) for name in levels if name != "ours"} | {"ours": (0.0, 0.0)}
    told = Bed("NR", schemes["ldm+gsh"], 5, 6.0).of_coordinator()
    assert (told["coordinator.beta"], told["coordinator.theta"]) == (150e3, 150e3)


def test_the_cells_are_all_placements_with_all_schemes() -> None:
    cells = Prototype().cells()
    assert len(cells) == 3 * 6 + len(["NR + LDM α=0.05", "LL + no balancing"])
    assert cells[0] == "RND + no balancing"
    assert [cell for cell in cells if "LL" in cell or "0.05" in cell] == ["NR + LDM α=0.05", "LL + no balancing"]
    assert Prototype(placements=["NR"], policies=["ldm"]).cells() == ["NR + LDM"]
    assert Prototype(placements=["NR"], policies=["ldm"], seeds=2).cells() == ["NR + LDM", "NR + LDM, seed 2"]


def test_a_placement_or_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidError, match="there is no placement 'XX'; there are RND, RR, NR, LL"):
        Prototype(placements=["XX"])
    with pytest.raises(InvalidError, match=r"there is no planner 'best'.*the schemes are none, ldm"):
        Prototype(policies=["best"])


def test_loads_must_fall_for_every_placement_that_was_run() -> None:
    runs = {RunKey(place, "no balancing"): steady(300, 100) for place in ("RR", "NR")}
    falling = runs | {RunKey(place, "LDM"): steady(210, 190) for place in ("RR", "NR")}
    assert claims.falls(falling, "LDM").holds is Holds.YES
    assert claims.falls(falling | {RunKey("RR", "LDM"): steady(310, 90)}, "LDM").holds is Holds.PARTLY
    assert claims.falls(runs, "LDM").holds is Holds.UNKNOWN


def test_far_more_is_twice_as_many() -> None:
    moves = {"RND": 40, "RR": 50, "NR": 100}
    runs = {RunKey(place, "SDM"): steady(2, 2, moved) for place, moved in moves.items()}
    assert claims.nearest_costs(runs, "SDM").holds is Holds.YES
    assert claims.nearest_costs(runs | {RunKey("RR", "SDM"): steady(2, 2, 60)}, "SDM").holds is Holds.PARTLY
    assert claims.nearest_costs({RunKey("NR", "SDM"): steady(2, 2)}, "SDM").holds is Holds.UNKNOWN


def test_extreme_is_a_cov_above_a_half() -> None:
    runs = {RunKey("NR", "no balancing"): steady(4, 1), RunKey("RR", "no balancing"): steady(3, 2)}
    assert claims.nearest_worst(runs).holds is Holds.YES
    assert claims.nearest_worst({RunKey("NR", "no balancing"): steady(3, 2)}).holds is Holds.NO


def test_similar_is_within_fifteen_per_cent() -> None:
    runs = {RunKey("NR", "LDM"): steady(110, 100), RunKey("NR", "SDM"): steady(100, 100)}
    assert claims.similar(runs).holds is Holds.YES
    assert claims.similar(runs | {RunKey("NR", "LDM"): steady(120, 100)}).holds is Holds.NO


def test_only_moves_after_the_first_ten_minutes_are_later_ones() -> None:
    early = course([[1.0, 1.0]] * 4, [0, 300, 300, 310])
    late = course([[1.0, 1.0]] * 4, [0, 50, 90, 120])
    assert claims.shuffle_saves({RunKey("NR", "LDM+GSH"): early, RunKey("NR", "LDM"): late}).holds is Holds.YES
    assert claims.shuffle_saves({RunKey("NR", "LDM+GSH"): late, RunKey("NR", "LDM"): early}).holds is Holds.NO


def test_schemes_are_compared_with_every_seed_that_has_both() -> None:
    runs = {RunKey("NR", name, seed): steady(100, 100) for name in ("LDM", "SDM") for seed in (1, 2)}
    assert claims.similar(runs).holds is Holds.YES
    worse = claims.similar(runs | {RunKey("NR", "LDM", 2): steady(120, 100)})
    assert (worse.holds, "NR, seed 2" in worse.measured) == (Holds.PARTLY, True)
    assert "seed 2" not in claims.similar({key: run for key, run in runs.items() if key != ("NR", "SDM", 2)}).measured


def test_least_loaded_placement_is_bad_where_it_is_less_even_than_random() -> None:
    runs = {RunKey("RND", "no balancing"): steady(110, 90), RunKey("LL", "no balancing"): steady(190, 10)}
    assert claims.least_loaded(runs).holds is Holds.YES
    assert claims.least_loaded(runs | {RunKey("RR", "no balancing"): steady(195, 5)}).holds is Holds.PARTLY
    assert claims.least_loaded({RunKey("LL", "no balancing"): steady(190, 10)}).holds is Holds.UNKNOWN


def test_random_placement_is_cheap_with_few_moves_and_no_shuffle() -> None:
    runs = {RunKey("RND", name): steady(1, 1, 7) for name in ("LDM", "SDM")}
    both = [replace(SUMMARY, placement="RND", scheme="LDM+GSH")]
    assert claims.random_is_cheap(runs, both).holds is Holds.YES
    assert claims.random_is_cheap(runs, [replace(both[0], shuffles=1)]).holds is Holds.PARTLY
    assert claims.random_is_cheap(runs | {RunKey("RND", "SDM"): steady(1, 1, 90)}, []).holds is Holds.PARTLY
    assert claims.random_is_cheap({}, []).holds is Holds.UNKNOWN


def test_as_many_moves_are_within_a_part_or_a_few() -> None:
    runs = {RunKey("RR", "LDM"): steady(1, 1, 3), RunKey("RR", "SDM"): steady(1, 1, 9)}
    many = {RunKey("NR", "LDM"): steady(1, 1, 104), RunKey("NR", "SDM"): steady(1, 1, 140)}
    assert claims.similar_moves(runs).holds is Holds.YES
    assert claims.similar_moves(runs | many).holds is Holds.PARTLY


def test_shuffles_gain_little_where_loads_end_alike() -> None:
    runs = {RunKey("NR", "LDM"): steady(120, 80), RunKey("NR", "LDM+GSH"): steady(110, 90)}
    assert claims.shuffle_gains_little(runs).holds is Holds.YES
    assert claims.shuffle_gains_little(runs | {RunKey("NR", "LDM"): steady(170, 30)}).holds is Holds.NO


def test_ours_is_as_low_as_ldm_and_gsh() -> None:
    runs = {RunKey("NR", "LDM+GSH"): steady(100, 100, 500), RunKey("NR", "ours"): steady(100, 99, 600)}
    assert claims.ours(runs).holds is Holds.YES
    assert claims.ours(runs | {RunKey("NR", "ours"): steady(101, 99, 200)}).holds is Holds.NO


def test_moves_are_compared_where_ldm_ends_as_even() -> None:
    runs = {RunKey("NR", "LDM α=0.05"): steady(105, 95, 150), RunKey("NR", "ours"): steady(104, 96, 140)}
    assert claims.ours_as_even(runs).holds is Holds.YES
    assert claims.ours_as_even(runs | {RunKey("NR", "ours"): steady(104, 96, 160)}).holds is Holds.PARTLY


def test_a_run_that_delivered_much_less_than_others_is_not_compared() -> None:
    summaries = [
        replace(SUMMARY, scheme=scheme, bytes=size) for scheme, size in (("LDM", 100), ("SDM", 90), ("ours", 40))
    ]
    runs = {RunKey("NR", one.scheme): steady(2, 1) for one in summaries}
    assert stalled_runs(summaries) == [RunKey("NR", "ours")]
    assert set(sound_runs(runs, summaries)) == {RunKey("NR", "LDM"), RunKey("NR", "SDM")}


def test_one_lost_notification_in_any_run_is_one_too_many() -> None:
    assert claims.nothing_lost([SUMMARY, SUMMARY]).holds is Holds.YES
    assert claims.nothing_lost([SUMMARY, replace(SUMMARY, lost=1)]).holds is Holds.NO
    assert claims.nothing_lost([]).holds is Holds.UNKNOWN


def trace(path: Path, people: int, seconds: int) -> Path:
    """A trace in which everybody goes east, from a corner of a square of two kilometres."""
    rows = [(t, f"p{n}", 500.0 + n + t, 700.0 + n) for t in range(seconds) for n in range(people)]
    rows += [(t, "e9", 2500.0, 2700.0) for t in range(seconds)]
    columns = dict(zip(("t", "node", "x", "y"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path)
    return path


def test_a_trace_says_who_there_is_and_where_brokers_are_and_is_part_of_what_a_run_is(tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.parquet", 7, 300)
    study = Prototype(quick=True, trace=path)
    assert study.settings["subscribers"] == 7
    assert study.smaller.startswith("7 of 400 subscribers")
    assert str(study.settings["trace"]).startswith("trace.parquet, sha256 ")
    assert "trace" not in Prototype(quick=True).settings
    corners = study._ground.low, study._ground.high
    assert corners == ((500.0, 700.0), (2500.0, 2700.0))
    places = [of["broker.location"] for of in Bed("NR", scheme("ldm"), 5, 6.0, *corners).network(tmp_path).of_brokers]
    assert places == [[1500, 1700], [500, 700], [2500, 700], [500, 2700], [2500, 2700]]


def test_a_trace_that_ends_before_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"lasts 299 s, and a run takes 300 s"):
        Prototype(quick=True, trace=trace(tmp_path / "trace.parquet", 7, 299))


def test_roads_are_part_of_what_a_run_is(tmp_path: Path) -> None:
    roads = tmp_path / "roads.wkt"
    roads.write_text("LINESTRING (100 200, 1100 200, 1100 1200)\n")
    study = Prototype(quick=True, roads=roads)
    assert (study._ground.low, study._ground.high) == ((100.0, 200.0), (1100.0, 1200.0))
    assert str(study.settings["roads"]).startswith("roads.wkt, sha256 ")
    assert study.settings["subscribers"] == 40
    with pytest.raises(InvalidError, match="cannot be read as a road map"):
        Prototype(roads=tmp_path / "none.wkt")


def test_a_machine_that_is_too_small_and_people_who_are_missing_are_in_the_report() -> None:
    sections = Prototype().sections(StudyData({RunSummary: [replace(SUMMARY, small="Too small.", missing=200)]}))
    assert "NR + LDM, seed 1: Too small." in sections[-1].text
    assert "200 subscribers are missing" in sections[-1].text


@pytest.mark.process
@pytest.mark.spark
def test_the_quick_version_runs_the_real_system(tocsin: Program) -> None:
    ended = tocsin("experiment", "testbed", "--quick", "--placement", "nr", "--policy", "ldm", "--out", "run")
    assert (ended.status, ended.err.splitlines()) == (0, ["NR + LDM done, 1 of 1"])
    directory = Directory(Path("run"), Prototype.tables)
    (summary,) = directory.data().of(RunSummary)
    interests = World(1, people=40).interests()
    assert summary.frontend == len(interests)
    assert summary.backend == len({(one.channel, tuple(one.params.items())) for one in interests})
    assert summary.reports > 0
    assert summary.locations > 0
    assert (summary.lost, summary.repeated, summary.missing) == (0, 0, 0)
    assert summary.logouts > 0
    assert summary.unsubscribed > 0
    last = directory.data().of(LoadRow)[-3:]
    assert [load.broker for load in last] == ["broker-1", "broker-2", "broker-3"]
    assert sum(load.subscribers for load in last) == 40
