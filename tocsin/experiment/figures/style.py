"""The style of all figures, their colours, and how they are saved.

Colours are of middling brightness, so that they can be told from a white and from a dark ground. What is ink on paper
has a colour of its own, ``INK`` or ``PALE``, which a page that is dark replaces.
"""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#24292f"
PALE: Final = "#d0d5db"
GROUND: Final = "#ffffff"

BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY, OLIVE, CYAN = (
    "#3f7fbf", "#dd8a2e", "#4a9d5b", "#d0524c", "#9370bd", "#96705f", "#d47fb4", "#858b94", "#a3a136", "#3fa9b5",
)  # fmt: skip
COLOURS: Final = (BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY, OLIVE, CYAN)
MARKERS: Final = "osD^vPX*hd"
STROKES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

_STYLE: Final[dict[Any, Any]] = {
    "figure.facecolor": GROUND,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "text.color": INK,
    "font.family": "sans-serif",
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's own font
    "svg.hashsalt": "tocsin",  # the same figure, the same bytes
}


def require() -> None:
    """Refuses to go on where nothing can be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidError("matplotlib is not installed, and experiments draw; pip install 'tocsin[experiments]'")


@contextmanager
def use_style() -> Iterator[None]:
    """Everything drawn and saved within looks like ours."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def panels(number: int, *, wide: float = 3.3, high: float = 2.7, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of panels side by side, or in rows."""
    from matplotlib.figure import Figure

    across = -(-number // rows)
    figure = Figure(figsize=(wide * across, high * rows), layout="constrained")
    grid = figure.subplots(rows, across, squeeze=False)
    axes: list[Axes] = list(grid.flat)
    for unused in axes[number:]:
        unused.remove()
    return figure, axes[:number]


def save(figure: Figure, path: Path) -> str:
    """Writes ``path``.svg and .png; the SVG's text."""
    figure.savefig(path.with_suffix(".png"), dpi=150, metadata={"Software": None})
    kept = io.StringIO()
    figure.savefig(kept, format="svg", metadata={"Date": None, "Creator": None})
    svg = _slim(kept.getvalue())
    path.with_suffix(".svg").write_text(svg, encoding="utf-8")
    return svg


def _slim(svg: str) -> str:
    """The same drawing in fewer bytes: without metadata and comments, and places to a hundredth of a point."""
    for useless in (r"<metadata>.*?</metadata>", r"<!--.*?-->"):
        svg = re.sub(useless, "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)
    return re.sub(r"\n\s*", "\n", svg)


def colour(number: int) -> str:
    """The colour of the n-th of several."""
    return COLOURS[number % len(COLOURS)]
