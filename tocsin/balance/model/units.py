"""Figures as people read them. Needs no arrays, so that whoever shows what servers say can use it."""

from __future__ import annotations

_UNITS = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def rate(bytes_per_second: float) -> str:
    """A rate as people read it: 22.3 MB/s."""
    value, unit = float(bytes_per_second), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"
