"""How many examples hypothesis tries where a test says how many: so many in a whole run, and fewer in a quick one."""

from __future__ import annotations

from hypothesis import settings

# What hypothesis tries where nobody says anything.
_USUAL = 100
_FEWEST = 5


def examples(count: int) -> int:
    """As many of the count as the profile in use tries of the usual hundred."""
    return max(_FEWEST, count * settings().max_examples // _USUAL)
