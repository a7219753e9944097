"""The experiment with processing nodes: what it measures, and how its claims are judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from tests.cli.program import Program
from tocsin.experiment.slices import claims
from tocsin.experiment.slices.rows import Evenness, Growth, Takeover, Throughput
from tocsin.experiment.slices.run import RunningNodes, SliceRun
from tocsin.experiment.slices.study import SharedSlices
from tocsin.experiment.study import StudyData
from tocsin.experiment.verdict import Holds
from tocsin.simulate.clock import START
from tocsin.simulate.slices.flow import FlowingLog, publishers

FINE = Evenness(10, 100, 1000, "migrate", 0.2, 1.4, 0.05, 1.1, 1.0, 12, 0.3, 0.6, 0.7, 0.25, 10_000, 0)
COARSE = structs.replace(FINE, slices=10, highest_after=1.3, bound=1.2)


def test_what_comes_adds_up_over_the_phases() -> None:
    log = FlowingLog(np.array([10.0, 1.0]), ((2.0, 1.0), (4.0, 3.0)))
    assert [log.end(0, START + second) for second in (-1, 0, 2, 3, 4, 5)] == [0, 0, 0, 10, 20, 50]
    assert [log.factor(START + second) for second in (0, 3, 9)] == [1.0, 1.0, 3.0]


def test_publishers_are_assigned_by_their_names_and_send_what_the_law_says() -> None:
    rates = publishers(5_000, 10, 0.8, 2.0, seed=1)
    assert rates.sum() == pytest.approx(10_000)
    assert (rates == publishers(5_000, 10, 0.8, 2.0, seed=1)).all()
    assert not (rates == publishers(5_000, 10, 0.8, 2.0, seed=2)).all()


def test_nodes_keep_up_with_what_comes_and_become_more_even() -> None:
    nodes = RunningNodes(SliceRun(4, 40, 500, exponent=1.0))
    nodes.system.advance(4.0)
    before = nodes.figures()
    nodes.system.advance(30.0)
    assert nodes.moves
    assert nodes.figures()[1] < before[1]
    assert nodes.behind() < 2.0
    assert nodes.missing() == 0


def test_finer_slices_must_be_more_even() -> None:
    assert claims.finer_is_more_even([COARSE, FINE]).holds is Holds.YES
    assert claims.finer_is_more_even([COARSE, structs.replace(FINE, highest_after=1.5)]).holds is Holds.NO
    assert claims.finer_is_more_even([FINE]).holds is Holds.UNKNOWN


def test_the_highest_load_is_judged_by_the_bound() -> None:
    assert claims.balanced([FINE, COARSE]).holds is Holds.YES
    assert claims.balanced([structs.replace(FINE, highest_after=1.3)]).holds is Holds.NO


def test_a_pause_of_more_than_a_second_and_a_missing_record_are_told() -> None:
    assert claims.short_pause([FINE]).holds is Holds.YES
    assert claims.short_pause([structs.replace(FINE, pause_p99=1.2)]).holds is Holds.NO
    assert claims.nothing_missing([FINE]).holds is Holds.YES
    assert claims.nothing_missing([FINE, structs.replace(FINE, missing=1)]).holds is Holds.PARTLY


def test_a_thousand_nodes_must_have_become_even() -> None:
    many = structs.replace(FINE, nodes=1000)
    assert claims.thousand_nodes([FINE, many]).holds is Holds.YES
    assert claims.thousand_nodes([structs.replace(many, cov_after=0.19)]).holds is Holds.NO
    assert claims.thousand_nodes([FINE]).holds is Holds.UNKNOWN


def test_the_dead_must_be_replaced_within_seconds() -> None:
    assert claims.taken_over([Takeover(10, 9, 2.0, 5.0)]).holds is Holds.YES
    assert claims.taken_over([Takeover(10, 9, 2.0, 15.0)]).holds is Holds.NO


def growth(second: float, factor: float, nodes: int, behind: float) -> Growth:
    return Growth(second, factor, nodes, nodes, 0.6, behind, 0)


def test_nodes_must_come_when_the_load_doubles_and_go_when_it_halves() -> None:
    grown = [growth(1, 1.0, 4, 0.3), growth(2, 2.0, 4, 3.0), growth(3, 2.0, 6, 0.4)]
    after = [growth(4 + number, 1.0, 6 - number // 5, 0.3) for number in range(10)]
    assert claims.grows(grown).holds is Holds.YES
    assert claims.grows([*grown[:2], growth(3, 2.0, 4, 9.0)]).holds is Holds.NO
    assert claims.shrinks([*grown, *after]).holds is Holds.YES
    assert claims.shrinks([*grown, *after[:4], *[growth(9, 1.0, 6, 0.3)] * 6]).holds is Holds.NO
    assert claims.shrinks(grown).holds is Holds.UNKNOWN


def test_real_workers_are_measured_on_request_and_told_from_what_is_simulated() -> None:
    simulated, study = SharedSlices(quick=True), SharedSlices(quick=True, real=True)
    assert study.cells() == [*simulated.cells(), "real workers"]
    # A run that was interrupted goes on with the same settings only.
    assert study.settings != simulated.settings
    assert "Nothing here is measured on real machines" in simulated.about
    assert "Nothing" not in study.about


def test_the_report_of_real_workers_says_what_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[tuple[str, float]]()

    def throughput(directory: Path, seconds: float, say: Callable[[str], None]) -> dict[int, float]:
        assert directory.is_dir()
        say("publishing")
        return {0: 1000.0, 2: 900.0, 1: 950.0, 3: 700.0}

    monkeypatch.setattr("tocsin.bench.data.workers.throughput", throughput)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    study = SharedSlices(real=True)
    rows = list(study.measure("real workers", lambda *doing: told.append(doing)))
    assert rows == [
        Throughput(0, 2, 1000.0, 1.0),
        *(Throughput(n, 2, r, r / 1000) for n, r in ((1, 950), (2, 900), (3, 700))),
    ]
    assert told == [("publishing", 0.0)]
    (section,) = study.sections(StudyData({Throughput: rows}))
    assert "on the 2 cores of this machine" in section.text
    assert section.grids[0].rows[0] == ["none", "1,000", "1.00"]
    assert section.grids[0].rows[3] == ["3", "700", "0.70"]


@pytest.mark.slow
def test_the_command_leaves_a_report(tocsin: Program) -> None:
    assert tocsin("experiment", "slices", "--quick", "--out", "run").status == 0
    assert "Elasticity" in Path("run/report.html").read_text(encoding="utf-8")
    assert len(Path("run/growth.csv").read_text(encoding="utf-8").splitlines()) == 361
