"""What the paper claims of its simulation, by the numbers of our runs.

Every claim is judged seed by seed: it holds if it does with all of them, and in part if with some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tocsin.balance.control.thresholds import Thresholds
from tocsin.experiment.series.course import Course
from tocsin.experiment.series.spread import spread
from tocsin.experiment.verdict import ClaimVerdict, judge_cases

Runs = Mapping[str, Course]
"""Runs of one seed by the names of their schemes."""
Seeds = Sequence[Runs]

ALPHA: Final = Thresholds.paper().alpha
NONE, LDM, GSH, OURS, MIGRATE = "no balancing", f"LDM α={ALPHA:g}", "GSH", "ours", "migrate"

_CROWDED, _EMPTY = 2_000, 500
_PEOPLE = 10_000
_HALF = 0.6
# Loads are moving averages over a minute, so nothing shows sooner than in about two.
_AT_ONCE = 120.0
_AS_GOOD = 1.05
_AS_LOW = 1.02
_FEW = 0.25


def verdicts(seeds: Seeds, alphas: Sequence[str], betas: Sequence[str]) -> list[ClaimVerdict]:
    """All of them. ``alphas`` and ``betas`` are the runs of the sweeps, the smallest threshold first."""
    return [
        skewed(seeds),
        halved(seeds, LDM),
        halved(seeds, GSH),
        at_once(seeds),
        no_more(seeds),
        better(seeds),
        finer(seeds, alphas),
        dearer("α", seeds, alphas),
        dearer("β", seeds, betas),
        as_good(seeds, alphas[0]),
        ours(seeds, OURS),
        ours(seeds, MIGRATE),
    ]


def skewed(seeds: Seeds) -> ClaimVerdict:
    """One broker has far more subscribers than the others."""
    claim = "NR: one broker begins with more than 2,000 of 10,000 subscribers, others with fewer than 500 (6.2.2)"
    found = [sorted(runs[NONE].populations(float("inf")).values()) for runs in _with(seeds, NONE)]
    most, least = ([numbers[end] for numbers in found] for end in (-1, 0))
    said = f"{spread(most, ',.0f')} on the fullest broker, {spread(least, ',.0f')} on the emptiest"
    return judge_cases(claim, said, [_uneven(numbers) for numbers in found])


def halved(seeds: Seeds, scheme: str) -> ClaimVerdict:
    """The highest load is about halved, or falls by more."""
    claim = f"{scheme} about halves the highest load (slides)"
    found = _with(seeds, NONE, scheme)
    parts = [runs[scheme].highest / runs[NONE].highest for runs in found]
    possible = spread([runs[NONE].mean / runs[NONE].highest for runs in found])
    said = f"to {spread(parts)} of what it is without balancing (about half: up to 0.6; the mean load is at {possible})"
    why = f"the highest load cannot fall below the mean, {possible}"
    return judge_cases(claim, said, [part <= _HALF for part in parts], why)


def at_once(seeds: Seeds) -> ClaimVerdict:
    """GSH balances as soon as it is done, and LDM takes longer."""
    claim = "GSH balances at once, LDM takes longer to reach the balanced state (6.2.2)"
    found = _with(seeds, GSH, LDM)
    calm = {name: [runs[name].calm_from(ALPHA) for runs in found] for name in (GSH, LDM)}
    began = [runs[GSH].first_moves() for runs in found]
    said = (
        f"cov is at most {ALPHA:g} for good from {_minutes(calm[GSH])} with GSH, whose first moves are at "
        f"{_minutes(began)}, and from {_minutes(calm[LDM])} with LDM (at once: within two minutes, for loads are "
        "averages over one)"
    )
    held = []
    for first, greedy, load in zip(began, calm[GSH], calm[LDM], strict=True):
        held.append(greedy is not None and first is not None and greedy - first <= _AT_ONCE)
        held.append(load is None or (greedy is not None and load > greedy))
    return judge_cases(claim, said, held, "the rates change after the shuffle, and GSH alone does not act below γ")


def no_more(seeds: Seeds) -> ClaimVerdict:
    """After the shuffle nobody moves."""
    claim = "GSH needs no migrations afterwards (6.2.2, slides)"
    greedy = [runs[GSH] for runs in _with(seeds, GSH)]
    began = [(run, run.first_moves()) for run in greedy]
    later = [run.moved_after(first + _AT_ONCE) for run, first in began if first is not None]
    moved = spread([run.total_moves for run in greedy], ",.0f")
    said = f"{moved} moves in all, {spread(later, ',.0f')} of them later than two minutes after the first"
    return judge_cases(
        claim, said, [late == 0 for late in later], "cov rises above γ again while people still subscribe"
    )


def better(seeds: Seeds) -> ClaimVerdict:
    """GSH ends better balanced than LDM."""
    claim = f"GSH gives a better balanced distribution than LDM with α = {ALPHA:g} (slides)"
    found = _with(seeds, GSH, LDM)
    greedy, load = (spread([runs[name].cov for runs in found], ".3f") for name in (GSH, LDM))
    why = "GSH places everybody by the rates of one moment; when these change, it does not act below γ, and LDM does"
    held = [runs[GSH].cov < runs[LDM].cov for runs in found]
    return judge_cases(claim, f"cov {greedy} with GSH, {load} with LDM", held, why)


def finer(seeds: Seeds, names: Sequence[str]) -> ClaimVerdict:
    """The smaller α, the better balanced."""
    swept = _select_sweep(seeds, names)
    said = "cov " + _each(swept, lambda run: run.cov, ".3f")
    return judge_cases("The smaller α, the better balanced (figure 14)", said, _rising(swept, lambda run: run.cov))


def dearer(symbol: str, seeds: Seeds, names: Sequence[str]) -> ClaimVerdict:
    """The smaller a threshold, the more moves."""
    swept = _select_sweep(seeds, names)
    said = "moves " + _each(swept, lambda run: run.total_moves, ",.0f")
    why = "moves made early, on half the load, save as many later" if symbol == "β" else ""
    held = _rising(swept, lambda run: -run.total_moves)
    return judge_cases(f"The smaller {symbol}, the more migrations (figure 14)", said, held, why)


def as_good(seeds: Seeds, small: str) -> ClaimVerdict:
    """With a small α, LDM gets as good as GSH."""
    claim = "With α = 0.05 LDM gets as good as GSH (figure 14)"
    found = _with(seeds, GSH, small)
    ratios = [runs[small].highest / runs[GSH].highest for runs in found]
    said = f"highest load × {spread(ratios, '.3f')} of GSH's, {_covs(found, small)} (as good: up to {_AS_GOOD:g})"
    why = "LDM stops at α, and what it moved is pulled twice"
    return judge_cases(claim, said, [ratio <= _AS_GOOD for ratio in ratios], why)


def ours(seeds: Seeds, scheme: str) -> ClaimVerdict:
    """Ours, not the paper's: as low as GSH, with far fewer moves."""
    what = {OURS: "migrate and shuffle, as the product does by default", MIGRATE: "migrate alone"}[scheme]
    claim = f"Ours ({what}): highest load within 2 % of GSH's, with at most a quarter of its moves"
    found = _with(seeds, scheme, GSH)
    ratios = [runs[scheme].highest / runs[GSH].highest for runs in found]
    moved = {name: spread([runs[name].total_moves for runs in found], ",.0f") for name in (scheme, GSH)}
    said = (
        f"highest load × {spread(ratios, '.3f')} of GSH's, {_covs(found, scheme)}, "
        f"{moved[scheme]} moves to {moved[GSH]}"
    )
    few = [runs[scheme].total_moves <= _FEW * runs[GSH].total_moves for runs in found]
    return judge_cases(claim, said, [*(ratio <= _AS_LOW for ratio in ratios), *few])


def _with(seeds: Seeds, *names: str) -> list[Runs]:
    """The seeds with which all these were run."""
    return [runs for runs in seeds if runs.keys() >= {*names}]


def _select_sweep(seeds: Seeds, names: Sequence[str]) -> dict[str, list[Course]]:
    """The runs of a sweep that every seed has which has any of it, in the order of the seeds."""
    found = [runs for runs in seeds if any(name in runs for name in names)]
    return {name: [runs[name] for runs in found] for name in names if all(name in runs for runs in found) and found}


def _each(swept: Mapping[str, Sequence[Course]], figure: Callable[[Course], float], form: str) -> str:
    return ", ".join(f"{spread([figure(run) for run in runs], form)} with {name}" for name, runs in swept.items())


def _rising(swept: Mapping[str, Sequence[Course]], figure: Callable[[Course], float]) -> list[bool]:
    """Seed by seed: whether a figure is at least as large as the one before, and the last larger than the first."""
    held = []
    for runs in zip(*swept.values(), strict=True) if len(swept) > 1 else ():
        values = [figure(run) for run in runs]
        held += [*(one <= other for one, other in pairwise(values)), values[0] < values[-1]]
    return held


def _uneven(numbers: Sequence[int]) -> bool:
    scale = sum(numbers) / _PEOPLE
    return numbers[-1] > _CROWDED * scale and numbers[0] < _EMPTY * scale


def _covs(found: Sequence[Runs], scheme: str) -> str:
    one, other = (spread([runs[name].cov for runs in found], ".3f") for name in (scheme, GSH))
    return f"cov {one} to {other}"


def _minutes(times: Sequence[float | None]) -> str:
    known = [time / 60 for time in times if time is not None]
    never = f"{'' if not known else ', with '}{len(times) - len(known)} seeds never" if len(known) < len(times) else ""
    return f"{'minute ' if known else ''}{spread(known, '.1f')}{never}"
