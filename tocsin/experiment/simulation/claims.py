"""What the paper claims of its simulation, by the numbers of our runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tocsin.experiment.series.course import Course
from tocsin.experiment.verdict import Verdict, counted, judged, unmeasured

Runs = Mapping[str, Course]
"""Runs by the names of their schemes."""

NONE, LDM, GSH, OURS, MIGRATE = "no balancing", "LDM α=0.15", "GSH", "ours", "migrate"

_CROWDED, _EMPTY = 2_000, 500
_PEOPLE = 10_000
_HALF = 0.6
# Loads are moving averages over a minute, so nothing shows sooner than in about two.
_AT_ONCE = 120.0
_AS_GOOD = 1.05


def verdicts(runs: Runs, alphas: Sequence[str], betas: Sequence[str]) -> list[Verdict]:
    """All of them. ``alphas`` and ``betas`` are the runs of the sweeps, the smallest threshold first."""
    swept = {name: runs[name] for name in alphas if name in runs}
    return [
        skewed(runs),
        halved(runs, LDM),
        halved(runs, GSH),
        at_once(runs),
        no_more(runs),
        better(runs),
        finer(swept),
        dearer("α", swept),
        dearer("β", {name: runs[name] for name in betas if name in runs}),
        as_good(runs, swept),
        ours(runs, OURS),
        ours(runs, MIGRATE),
    ]


def skewed(runs: Runs) -> Verdict:
    """One broker has far more subscribers than the others."""
    claim = "NR: one broker begins with more than 2,000 of 10,000 subscribers, others with fewer than 500 (6.2.2)"
    if NONE not in runs:
        return unmeasured(claim)
    numbers = sorted(runs[NONE].populations(float("inf")).values())
    scale = sum(numbers) / _PEOPLE
    said = f"{numbers[-1]:,} on the fullest broker, {numbers[0]:,} on the emptiest"
    return judged(claim, said, numbers[-1] > _CROWDED * scale and numbers[0] < _EMPTY * scale)


def halved(runs: Runs, scheme: str) -> Verdict:
    """The highest load is about halved, or falls by more."""
    claim = f"{scheme} about halves the highest load (slides)"
    if NONE not in runs or scheme not in runs:
        return unmeasured(claim)
    part = runs[scheme].highest / runs[NONE].highest
    possible = runs[NONE].mean / runs[NONE].highest
    said = f"to {part:.2f} of what it is without balancing (about half: up to 0.6; the mean load is at {possible:.2f})"
    return judged(claim, said, part <= _HALF, f"the highest load cannot fall below the mean, {possible:.2f}")


def at_once(runs: Runs) -> Verdict:
    """GSH balances as soon as it is done, and LDM takes longer."""
    claim = "GSH balances at once, LDM takes longer to reach the balanced state (6.2.2)"
    if GSH not in runs or LDM not in runs:
        return unmeasured(claim)
    greedy, load = (runs[name].calm_from(0.15) for name in (GSH, LDM))
    began = runs[GSH].first_moves()
    said = (
        f"cov is at most 0.15 for good from {_minute(greedy)} with GSH, whose first moves are at {_minute(began)}, and "
        f"from {_minute(load)} with LDM (at once: within two minutes, for loads are averages over one)"
    )
    if greedy is None or began is None:
        return judged(claim, said, False, "the rates change after the shuffle, and GSH alone does not act below γ")
    later = load is None or load > greedy
    why = "LDM's plan, too, is carried out as a whole within seconds, and it acts again whenever cov passes α"
    return counted(claim, said, [greedy - began <= _AT_ONCE, later], why)


def no_more(runs: Runs) -> Verdict:
    """After the shuffle nobody moves."""
    claim = "GSH needs no migrations afterwards (6.2.2, slides)"
    began = runs[GSH].first_moves() if GSH in runs else None
    if began is None:
        return unmeasured(claim, "" if GSH in runs else "GSH was not run")
    later = runs[GSH].moved_after(began + _AT_ONCE)
    said = f"{runs[GSH].moved:,} moves in all, {later:,} of them later than two minutes after the first"
    return judged(claim, said, later == 0, "cov rises above γ again while people are still subscribing")


def better(runs: Runs) -> Verdict:
    """GSH ends better balanced than LDM."""
    claim = "GSH gives a better balanced distribution than LDM with α = 0.15 (slides)"
    if GSH not in runs or LDM not in runs:
        return unmeasured(claim)
    greedy, load = runs[GSH].cov, runs[LDM].cov
    why = "GSH places everybody by the rates of one moment; when these change, it does not act below γ, and LDM does"
    return judged(claim, f"cov {greedy:.3f} with GSH, {load:.3f} with LDM", greedy < load, why)


def finer(swept: Runs) -> Verdict:
    """The smaller α, the better balanced."""
    claim = "The smaller α, the better balanced (figure 14)"
    covs = [course.cov for course in swept.values()]
    said = "cov " + ", ".join(f"{cov:.3f} ({name})" for name, cov in zip(swept, covs, strict=True))
    return counted(claim, said, _rising(covs))


def dearer(symbol: str, swept: Runs) -> Verdict:
    """The smaller a threshold, the more moves."""
    claim = f"The smaller {symbol}, the more migrations (figure 14)"
    moves = [course.moved for course in swept.values()]
    said = "moves " + ", ".join(f"{moved:,} ({name})" for name, moved in zip(swept, moves, strict=True))
    why = "moves made early, on half the load, save as many later" if symbol == "β" else ""
    return counted(claim, said, _rising([-moved for moved in moves]), why)


def as_good(runs: Runs, swept: Runs) -> Verdict:
    """With a small α, LDM gets as good as GSH."""
    claim = "With α = 0.05 LDM gets as good as GSH (figure 14)"
    small = next(iter(swept), "")
    if GSH not in runs or not small:
        return unmeasured(claim)
    one, other = swept[small], runs[GSH]
    said = f"highest load × {one.highest / other.highest:.3f} of GSH's, cov {one.cov:.3f} to {other.cov:.3f}"
    return judged(
        claim, said, one.highest <= other.highest * _AS_GOOD, "LDM stops at α, and what it moved is pulled twice"
    )


def ours(runs: Runs, scheme: str) -> Verdict:
    """Ours, not the paper's: as low as GSH, with fewer moves."""
    what = {OURS: "migrate and shuffle, as the product does by default", MIGRATE: "migrate alone"}[scheme]
    claim = f"Ours ({what}): highest load within 5 % of GSH's, with fewer moves"
    if not {scheme, GSH} <= runs.keys():
        return unmeasured(claim)
    one, other = runs[scheme], runs[GSH]
    ratio = one.highest / other.highest
    said = (
        f"highest load × {ratio:.3f} of GSH's, cov {one.cov:.3f} to {other.cov:.3f}, "
        f"{one.moved:,} moves to {other.moved:,}"
    )
    why = (
        "people who want the same are together, so a broker's load follows the rates of fewer BE subscriptions when "
        "these change, and nothing is done before the highest load is 1.1 times the mean again"
    )
    return counted(claim, said, [ratio <= _AS_GOOD, one.moved < other.moved], why)


def _rising(values: Sequence[float]) -> list[bool]:
    """Whether each is at least as large as the one before, and the last larger than the first."""
    if len(values) < 2:
        return []
    return [*(one <= other for one, other in pairwise(values)), values[0] < values[-1]]


def _minute(seconds: float | None) -> str:
    return "never" if seconds is None else f"minute {seconds / 60:.1f}"
