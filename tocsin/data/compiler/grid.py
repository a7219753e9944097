"""``near(x1, y1, x2, y2, radius)`` in SQL: as a plain condition, and as an equality of grid cells.

Points at most ``radius`` apart lie in the same or in neighbouring cells of a grid whose cells are at least that wide.
So one side of a join is put into its own cell and all eight around it, the other only into its own, and the join
becomes an equality that Spark can hash, with the exact condition checked on what is left. Each pair meets in exactly
one cell, so no row comes twice. Where the radius differs from row to row, cells have the next power of two as their
width, and the first side is put into the cells of every width in use.
"""

from __future__ import annotations

# Cells a little wider than the radius: rounding in x / width, up to 4e12 cells from the origin, can then not push two
# points two cells apart.
_MARGIN = "1.001D"
_NARROWEST = "0.001D"
# With a larger radius everything is in one cell.
_WIDEST = "1e100D"
# Cells beyond are one, so that neither they nor their neighbours overflow; points there still compare exactly.
_LAST = "4e18D"


def condition(x1: str, y1: str, x2: str, y2: str, radius: str) -> str:
    """The exact condition: within ``radius`` in the plane, the border included; false for a negative radius."""
    dx, dy = f"({number(x1)} - {number(x2)})", f"({number(y1)} - {number(y2)})"
    return f"({dx} * {dx} + {dy} * {dy} <= {number(radius)} * {number(radius)} AND ({radius}) >= 0)"


def number(value: str) -> str:
    """A value as a DOUBLE, converted implicitly, so that Spark tells of one that is not a number."""
    return f"(0D + ({value}))"


def width(radius: str) -> str:
    """The cell width for one fixed radius."""
    return _width(radius, number(radius))


def width_class(radius: str) -> str:
    """The cell width for radii that vary: few different widths, each at least the radius."""
    return _width(radius, f"pow(2D, ceil(log2({number(radius)})))")


def _width(radius: str, wide: str) -> str:
    return (
        f"(CASE WHEN ({radius}) > {_WIDEST} THEN CAST('Infinity' AS DOUBLE) "
        f"WHEN ({radius}) > 0 THEN greatest({wide}, {_NARROWEST}) * {_MARGIN} ELSE 1D END)"
    )


def neighbourhood(x: str, y: str, width: str) -> str:
    """An array of the cell of a point and the eight around it, all of one width."""
    cell = f"struct({width} AS w, {_cell(x, width)} + __i AS i, {_cell(y, width)} + __j AS j)"
    return f"flatten(transform(array(-1L, 0L, 1L), __i -> transform(array(-1L, 0L, 1L), __j -> {cell})))"


def same_cell(cell: str, x: str, y: str, width: str) -> str:
    """Whether ``cell``, one of a neighbourhood, is the cell in which the point (x, y) lies."""
    return f"{cell}.w = {width} AND {cell}.i = {_cell(x, width)} AND {cell}.j = {_cell(y, width)}"


def _cell(coordinate: str, width: str) -> str:
    return f"floor(greatest(least({number(coordinate)} / {width}, {_LAST}), -{_LAST}))"
