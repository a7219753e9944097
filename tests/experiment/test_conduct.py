from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.experiment.trial import Square, Trial
from tocsin.errors import InvalidError
from tocsin.experiment.conduct import conduct
from tocsin.experiment.directory import Directory
from tocsin.experiment.progress import ProgressBar
from tocsin.experiment.report.writing import WrittenReport


def run(trial: Trial, path: Path) -> WrittenReport:
    return conduct(trial, path, "tocsin experiment trial", ProgressBar(Console(file=io.StringIO())))


def squares(path: Path) -> list[int]:
    return [row.number for row in Directory(path, [Square]).data().of(Square)]


def test_a_run_leaves_numbers_figures_and_a_report(tmp_path: Path) -> None:
    outcome = run(Trial(), tmp_path / "run")
    files = sorted(path.name for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert files == ["report.html", "run.json", "squares.csv", "squares.png", "squares.svg"]
    assert squares(tmp_path / "run") == [1, 2, 3]
    assert [verdict.holds for verdict in outcome.verdicts] == ["yes"]


def test_an_interrupted_run_keeps_what_is_done_and_reports_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Trial(failing={2: KeyboardInterrupt()}), tmp_path)
    assert squares(tmp_path) == [1]
    assert "1 of 3 cells are done" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_interrupted_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Trial(failing={2: KeyboardInterrupt()}), tmp_path)
    again = Trial()
    run(again, tmp_path)
    assert again.measured == ["2", "3"]
    assert squares(tmp_path) == [1, 2, 3]


def test_rows_of_a_cell_that_was_not_finished_are_dropped(tmp_path: Path) -> None:
    run(Trial(numbers=(1,)), tmp_path)
    with (tmp_path / "squares.csv").open("a", encoding="utf-8") as file:
        file.write("2,2,4,False\n")
    run(Trial(numbers=(1,)), tmp_path)
    assert (tmp_path / "squares.csv").read_text(encoding="utf-8").split() == ["cell,number,square,odd", "1,1,1,True"]


def test_a_cell_that_fails_does_not_cost_the_others(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="three"):
        run(Trial(failing={3: InvalidError("no three")}), tmp_path)
    assert squares(tmp_path) == [1, 2]
    assert (tmp_path / "report.html").exists()


def test_a_run_with_other_settings_is_not_mixed_in(tmp_path: Path) -> None:
    run(Trial(), tmp_path)
    with pytest.raises(InvalidError, match=r"was run with numbers \[1, 2, 3\], not \[4\]; give --out another"):
        run(Trial(numbers=(4,)), tmp_path)


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(InvalidError, match="is no run of an experiment"):
        run(Trial(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InvalidError, match=r"cannot be made: .*give --out another directory"):
        run(Trial(), tmp_path / "file" / "run")


def test_without_a_terminal_there_is_a_line_per_cell(tmp_path: Path) -> None:
    said = io.StringIO()
    conduct(Trial(), tmp_path, "", ProgressBar(Console(file=said)))
    assert said.getvalue().splitlines() == ["1 done, 1 of 3", "2 done, 2 of 3", "3 done, 3 of 3"]
