"""What is said of the two balancers, by the numbers of a run. None of it is of a paper: neither knows the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tocsin.experiment.balancers.names import MATCHING, NONE, PADRES, TOCSIN
from tocsin.experiment.balancers.outcome import BalancerOutcome, outcomes
from tocsin.experiment.study import StudyData
from tocsin.experiment.verdict import ClaimVerdict, judge_cases, not_measured

NEAR: Final = 1.1
LEAST_PART: Final = 0.5
_TRIGGER: Final = 0.1
_LITTLE: Final = 0.015

Halves = list[dict[str, BalancerOutcome]]
"""The outcomes of each half by balancer."""


def verdicts(data: StudyData) -> list[ClaimVerdict]:
    """All of them."""
    halves: dict[tuple[str, float], dict[str, BalancerOutcome]] = {}
    for outcome in outcomes(data):
        halves.setdefault((outcome.half.setup, outcome.half.until), {})[outcome.balancer] = outcome
    known = list(halves.values())
    claims = (helps, near_bound, even, lower, fewer, possible, as_busy, cheap)
    return [claim(known) for claim in claims]


def helps(halves: Halves) -> ClaimVerdict:
    """Each lowers the highest traffic."""
    claim = "Each balancer at least halves the highest traffic"
    pairs = [(half[name], half[NONE]) for half in halves if NONE in half for name in (PADRES, TOCSIN) if name in half]
    parts = [ours.traffic / none.traffic for ours, none in pairs]
    return _verdict(claim, "to {} of what it is without", parts, [part <= LEAST_PART for part in parts], "{:.2f}")


def near_bound(halves: Halves) -> ClaimVerdict:
    """Ours is near the lower bound."""
    claim = "Tocsin's highest traffic is within a tenth of the lower bound"
    ratios = [half[TOCSIN].ratio for half in halves if TOCSIN in half]
    return _verdict(claim, "{} × the bound", ratios, [ratio <= NEAR for ratio in ratios], "{:.2f}")


def even(halves: Halves) -> ClaimVerdict:
    """PADRES's edges are within its trigger of each other."""
    claim = "PADRES's brokers end within its threshold of 0.1 of each other in traffic"
    apart = [half[PADRES].apart for half in halves if PADRES in half]
    why = "its output algorithm stops when input ratios are even, so that it does not work against the input algorithm"
    return _verdict(claim, "{} apart", apart, [value <= _TRIGGER for value in apart], "{:.2f}", why)


def lower(halves: Halves) -> ClaimVerdict:
    """Ours ends lower."""
    claim = "Tocsin's highest traffic ends below PADRES's"
    ratios = [half[TOCSIN].traffic / half[PADRES].traffic for half in halves if {TOCSIN, PADRES} <= half.keys()]
    return _verdict(claim, "{} × PADRES's", ratios, [ratio < 1 for ratio in ratios], "{:.2f}")


def fewer(halves: Halves) -> ClaimVerdict:
    """Ours moves fewer."""
    claim = "Tocsin moves fewer subscribers than PADRES in all, whether matching is counted or not"
    moves: Counter[tuple[str, str]] = Counter()
    for half in halves:
        moves.update({(outcome.half.setup, name): outcome.moves for name, outcome in half.items()})
    pairs = [
        (moves[setup, name], moves[setup, PADRES])
        for setup in dict.fromkeys(setup for setup, _ in moves)
        for name in (TOCSIN, MATCHING)
        if {(setup, name), (setup, PADRES)} <= moves.keys()
    ]
    measured = ", ".join(f"{ours:,} to {theirs:,}" for ours, theirs in pairs)
    return judge_cases(claim, measured, [ours < theirs for ours, theirs in pairs])


def possible(halves: Halves) -> ClaimVerdict:
    """No processor has more to match than it can."""
    claim = "Where brokers match, no processor has more to do than it can, whichever balances"
    shares = {
        name: [half[name].matching for half in halves if name in half]
        for name in (PADRES, TOCSIN, MATCHING)
        if any(name in half for half in halves)
    }
    measured = "; ".join(f"{name} up to {max(values):.2f} of one" for name, values in shares.items())
    why = (
        "brokers of Tocsin do not match, so that its load is traffic alone: who is sent little stays where it joined, "
        "and costs a broker that matches as much as others"
    )
    return judge_cases(claim, measured, [value <= 1 for values in shares.values() for value in values], why)


def as_busy(halves: Halves) -> ClaimVerdict:
    """With matching counted, ours is as good as PADRES at what PADRES is made for."""
    claim = "Where brokers match, the busiest resource is no busier with Tocsin, matching counted, than with PADRES"
    pairs = [(half[MATCHING].busiest, half[PADRES].busiest) for half in halves if {MATCHING, PADRES} <= half.keys()]
    measured = ", ".join(f"{ours:.2f} to {theirs:.2f}" for ours, theirs in pairs)
    why = (
        "loads of the coordinator's are sums: it reckons with every publication at every broker, where matching takes "
        "time only for what comes, and so gives those too little to whom little comes"
    )
    return judge_cases(claim, measured, [ours <= theirs for ours, theirs in pairs], why)


def cheap(halves: Halves) -> ClaimVerdict:
    """Both cost little."""
    claim = "Either balancer's messages are at most 1.5 % of all"
    parts = [half[name].overhead for half in halves for name in (PADRES, TOCSIN, MATCHING) if name in half]
    return _verdict(claim, "{}", parts, [part <= _LITTLE for part in parts], "{:.2%}")


def _verdict(
    claim: str, form: str, values: Sequence[float], held: list[bool], number: str, why: str = ""
) -> ClaimVerdict:
    if not values:
        return not_measured(claim)
    low, high = number.format(min(values)), number.format(max(values))
    return judge_cases(claim, form.format(low if low == high else f"{low} to {high}"), held, why)
