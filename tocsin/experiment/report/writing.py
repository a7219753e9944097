"""Writing a run's figures and its page."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tocsin.experiment.directory import Directory
from tocsin.experiment.figures.style import save, use_style
from tocsin.experiment.report.page import page
from tocsin.experiment.study import ReportSection, Study
from tocsin.experiment.verdict import ClaimVerdict, at_this_size


class WrittenReport(NamedTuple):
    """Where the page of a run is, and what it says of the claims."""

    report: Path
    verdicts: list[ClaimVerdict]


def write(study: Study, directory: Directory) -> WrittenReport:
    """Draws the figures and writes the page for the cells that are done."""
    data = directory.data()
    sections = study.sections(data)
    drawn = _draw_figures(sections, directory.path / "figures")
    target = directory.path / "report.html"
    verdicts = study.verdicts(data)
    if study.smaller:
        verdicts = [at_this_size(verdict, study.smaller) for verdict in verdicts]
    target.write_text(page(study, directory.about, sections, drawn, verdicts), encoding="utf-8")
    return WrittenReport(target, verdicts)


def _draw_figures(sections: list[ReportSection], folder: Path) -> dict[str, str]:
    """The figures' SVG texts by their names."""
    folder.mkdir(exist_ok=True)
    with use_style():
        return {
            drawing.name: save(drawing.draw(), folder / drawing.name)
            for section in sections
            for drawing in section.drawings
        }
