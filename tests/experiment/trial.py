"""A small experiment for tests of what all experiments share: it squares numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from tocsin.experiment.figures.lines import Axis, lines
from tocsin.experiment.figures.style import panels
from tocsin.experiment.study import Drawing, Grid, ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict, judge


class Square(Row, frozen=True):
    """A number and its square."""

    number: Annotated[int, Meta(description="any <number>")]
    square: Annotated[float, Meta(description="the number times itself")]
    odd: Annotated[bool, Meta(description="whether it is odd")]


@dataclass
class Trial:
    """Squares numbers, and can be told to fail at one of them."""

    numbers: Sequence[int] = (1, 2, 3)
    failing: dict[int, BaseException] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)

    name = "trial"
    title = "Squares & roots"
    smaller = ""
    about = "Numbers are squared.\n\nThey grow."
    tables = (Square,)

    @property
    def settings(self) -> dict[str, Any]:
        return {"numbers": tuple(self.numbers)}

    def cells(self) -> list[str]:
        return [str(number) for number in self.numbers]

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        self.measured.append(cell)
        yield Square(int(cell), float(cell) ** 2, int(cell) % 2 == 1)
        tell("squared", 0.5)
        if int(cell) in self.failing:
            raise self.failing[int(cell)]

    def sections(self, data: StudyData) -> list[ReportSection]:
        rows = data.of(Square)

        def draw() -> Any:
            figure, axes = panels(1)
            points = [row.number for row in rows], [row.square for row in rows]
            lines(axes[0], "squares", {"n²": points}, Axis("n"), Axis("n²"))
            return figure

        grid = Grid("Squares", ["n", "n²"], [[str(row.number), f"{row.square:g}"] for row in rows])
        return [ReportSection("Growth", "See <below>.", [Drawing("squares", "Squares & more", draw)], [grid])]

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        rows = data.of(Square)
        least = min((row.square for row in rows), default=0.0)
        return [judge("squares are at least 1", f"the least is {least:g}", least >= 1, "0 was squared")]
