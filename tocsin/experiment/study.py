"""What an experiment is: cells to measure one after the other, and what is made of their rows afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

R = TypeVar("R", bound=Row)

Tell = Callable[[str, float], None]
"""Says what is being done now, and how much of the cell is behind, from 0 to 1."""


class StudyData:
    """The rows of the cells that are done, by their tables."""

    def __init__(self, rows: Mapping[type[Row], Sequence[Row]]) -> None:
        self._rows = rows

    def of(self, kind: type[R]) -> list[R]:
        """The rows of a table, in the order in which they were measured."""
        return [row for row in self._rows.get(kind, ()) if isinstance(row, kind)]


@dataclass(frozen=True)
class Drawing:
    """A figure of a report.

    Args:
        name: of its files, without the ending.
        caption: says what is seen, beginning with the paper's figure number where it has one.
        draw: makes it. It is called when the files are written.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Grid:
    """A small table of a report, its cells as people read them."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class ReportSection:
    """A part of a report."""

    heading: str
    text: str
    drawings: Sequence[Drawing] = ()
    grids: Sequence[Grid] = ()


class Study(Protocol):
    """An experiment with its settings.

    The same settings give the same cells, and a cell's name says all that its rows depend on beside the settings; so a
    run that was interrupted can go on with the cells that are missing.
    """

    @property
    def name(self) -> str:
        """What it is called on the command line."""

    @property
    def title(self) -> str:
        """The report's heading."""

    @property
    def about(self) -> str:
        """What is done and why, for the beginning of the report."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on, as JSON can keep it."""

    @property
    def smaller(self) -> str:
        """What the run has less of than what the claims are made for: "150 of 10,000 subscribers"; else nothing."""

    @property
    def tables(self) -> Sequence[type[Row]]:
        """The tables it fills."""

    def cells(self) -> list[str]:
        """What is to be measured, one after the other."""

    def measure(self, cell: str, tell: Tell) -> Iterable[Row]:
        """Measures one cell; rows of any of the tables."""

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts, for whatever cells are done."""

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims, judged by the rows alone."""
