"""Running an experiment: cell after cell into its directory, and the report of whatever is done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tocsin.experiment.about import About
from tocsin.experiment.directory import Directory
from tocsin.experiment.progress import ProgressBar
from tocsin.experiment.report.writing import WrittenReport, write
from tocsin.experiment.study import Study


def conduct(study: Study, path: Path, command: str, progress: ProgressBar) -> WrittenReport:
    """Measures the cells that are not done yet, and writes the report.

    When it is interrupted or a cell fails, the cells that are done are kept and in the report all the same.
    """
    cells = study.cells()
    directory = Directory.open(path, study, About.of(study, command))
    try:
        _measure(study, cells, directory, progress)
    finally:
        outcome = write(study, directory)
    return outcome


def _measure(study: Study, cells: Sequence[str], directory: Directory, progress: ProgressBar) -> None:
    done = set(directory.about.done)
    with progress.over(cells, [cell for cell in cells if cell in done]):
        for cell in cells:
            if cell in done:
                continue
            began = time.perf_counter()
            rows = list(study.measure(cell, progress.tell(cell)))
            directory.add(cell, rows, time.perf_counter() - began)
            progress.finished(cell)
