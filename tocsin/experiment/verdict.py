"""A claim of the paper, what was measured, and whether it holds."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Holds(StrEnum):
    """Whether a claim holds."""

    YES = "yes"
    PARTLY = "in part"
    NO = "no"
    UNKNOWN = "not measured"


class Verdict(NamedTuple):
    """One line of the table that ends each report. ``why`` is for what does not hold, as far as the numbers tell."""

    claim: str
    measured: str
    holds: Holds
    why: str = ""


def judged(claim: str, measured: str, held: bool, why: str = "") -> Verdict:
    """A claim that holds or does not; the reason is kept only where it does not."""
    return Verdict(claim, measured, Holds.YES) if held else Verdict(claim, measured, Holds.NO, why)


def counted(claim: str, measured: str, held: list[bool], why: str = "") -> Verdict:
    """A claim over several cases: it holds in all of them, in some, or in none; without any it was not measured."""
    if not held:
        return unmeasured(claim)
    if all(held):
        return Verdict(claim, measured, Holds.YES)
    return Verdict(claim, measured, Holds.PARTLY if any(held) else Holds.NO, why)


def unmeasured(claim: str, why: str = "the cells that would tell were not run") -> Verdict:
    """A claim that the run says nothing of."""
    return Verdict(claim, "", Holds.UNKNOWN, why)
