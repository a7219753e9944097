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


class ClaimVerdict(NamedTuple):
    """One line of the table that ends each report. ``why`` is for what does not hold, as far as the numbers tell.

    A claim that is ``sizeless`` is made for systems of any size, and can be judged by a small one.
    """

    claim: str
    measured: str
    holds: Holds
    why: str = ""
    sizeless: bool = False


def judge(claim: str, measured: str, held: bool, why: str = "") -> ClaimVerdict:
    """A claim that holds or does not; the reason is kept only where it does not."""
    return ClaimVerdict(claim, measured, Holds.YES) if held else ClaimVerdict(claim, measured, Holds.NO, why)


def judge_cases(claim: str, measured: str, held: list[bool], why: str = "") -> ClaimVerdict:
    """A claim over several cases: it holds in all of them, in some, or in none; without any it was not measured."""
    if not held:
        return not_measured(claim)
    if all(held):
        return ClaimVerdict(claim, measured, Holds.YES)
    return ClaimVerdict(claim, measured, Holds.PARTLY if any(held) else Holds.NO, why)


def at_this_size(verdict: ClaimVerdict, smaller: str) -> ClaimVerdict:
    """What remains of a verdict when the run is ``smaller`` than what the claim is made for: what was measured."""
    if verdict.sizeless or verdict.holds is Holds.UNKNOWN:
        return verdict
    return ClaimVerdict(verdict.claim, verdict.measured, Holds.UNJUDGED, f"this run has {smaller}, and cannot tell")


def not_measured(claim: str, why: str = "the cells that would tell were not run") -> ClaimVerdict:
    """A claim that the run says nothing of."""
    return ClaimVerdict(claim, "", Holds.UNKNOWN, why)
