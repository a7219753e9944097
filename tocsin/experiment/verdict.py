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
    UNJUDGED = "not judged"


class Verdict(NamedTuple):
    """One line of the table that ends each report. ``why`` is for what does not hold, as far as the numbers tell.

    A claim that is ``sizeless`` is made for systems of any size, and can be judged by a small one.
    """

    claim: str
    measured: str
    holds: Holds
    why: str = ""
    sizeless: bool = False


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


def at_this_size(verdict: Verdict, smaller: str) -> Verdict:
    """What remains of a verdict when the run is ``smaller`` than what the claim is made for: what was measured."""
    if verdict.sizeless or verdict.holds is Holds.UNKNOWN:
        return verdict
    return Verdict(verdict.claim, verdict.measured, Holds.UNJUDGED, f"this run has {smaller}, and cannot tell")


def unmeasured(claim: str, why: str = "the cells that would tell were not run") -> Verdict:
    """A claim that the run says nothing of."""
    return Verdict(claim, "", Holds.UNKNOWN, why)
