"""Small SVG drawings from plain strings: boxes, lines, words, and bars of brokers' loads."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from tocsin.balance.model.plan import LoadFigures

INCOMING, OUTGOING, BOUND, INK, PALE = "#b5541c", "#4d7ea8", "#1d7a46", "#222222", "#f1efe9"
_PANEL, _GAP, _HEIGHT, _TOP, _LEFT = 210, 26, 150, 54, 16


class Drawing:
    """An SVG of a given size; coordinates grow to the right and down."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, fill: str = PALE, stroke: str = "none") -> None:
        """A rectangle."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="{stroke}"/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, stroke: str = INK, width: float = 1) -> None:
        """A straight line."""
        self._parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{stroke}" '
            f'stroke-width="{width:.1f}"/>'
        )

    def words(self, x: float, y: float, text: str, size: float = 12, anchor: str = "start", fill: str = INK) -> None:
        """One line of text."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}">'
            f"{escape(text)}</text>"
        )

    def save(self, path: Path) -> None:
        """Writes the file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" font-family="sans-serif" role="img">'
        )
        ground = f'<rect width="{self.width:g}" height="{self.height:g}" fill="white"/>'
        title = f"<title>{escape(self.title)}</title>"
        path.write_text("\n".join([head, title, ground, *self._parts, "</svg>", ""]), encoding="utf-8")


@dataclass(frozen=True)
class Panel:
    """The loads of all brokers under one assignment, with a heading and a line below it."""

    heading: str
    note: str
    figures: LoadFigures


def panels(title: str, shown: list[Panel], bound: float) -> Drawing:
    """Panels of bars side by side at one scale, with the lower bound for the highest load as a line."""
    drawing = Drawing(_LEFT + len(shown) * (_PANEL + _GAP), _TOP + _HEIGHT + 44, title)
    highest = max(panel.figures.max for panel in shown)
    for number, panel in enumerate(shown):
        _draw(drawing, panel, _LEFT + number * (_PANEL + _GAP), _HEIGHT / highest, bound)
    _legend(drawing, _TOP + _HEIGHT + 30)
    return drawing


def _draw(drawing: Drawing, panel: Panel, left: float, scale: float, bound: float) -> None:
    floor = _TOP + _HEIGHT
    drawing.words(left, 18, panel.heading, size=14)
    drawing.words(left, 36, panel.note, size=11, fill="#555555")
    drawing.box(left, _TOP, _PANEL, _HEIGHT)
    width = _PANEL / len(panel.figures.loads)
    for broker, (incoming, outgoing) in enumerate(zip(panel.figures.incoming, panel.figures.outgoing, strict=True)):
        x, high, low = left + broker * width + 1, outgoing * scale, incoming * scale
        drawing.box(x, floor - low, width - 2, low, INCOMING)
        drawing.box(x, floor - low - high, width - 2, high, OUTGOING)
    drawing.line(left, floor - bound * scale, left + _PANEL, floor - bound * scale, BOUND, 2)


def _legend(drawing: Drawing, y: float) -> None:
    entries = (
        (INCOMING, "incoming load"),
        (OUTGOING, "outgoing load"),
        (BOUND, "no assignment has a lower highest load"),
    )
    x = float(_LEFT)
    for colour, text in entries:
        drawing.box(x, y - 9, 10, 10, colour)
        drawing.words(x + 15, y, text, size=11)
        x += 40 + 6 * len(text)
