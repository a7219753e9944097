"""Section 6.2 of the paper, claim by claim, judged by the rows of ``padres-local``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tocsin.experiment.padres.accuracy import Accuracy, accuracy, select_undisturbed
from tocsin.experiment.padres.course import METRICS, OverlayCourse, input_of, overhead
from tocsin.experiment.padres.local.names import MAIN, UNBALANCED, samples_of, trigger_of
from tocsin.experiment.padres.rows import EdgeRow, EstimateRow, MessageRow
from tocsin.experiment.padres.scenario import JOINING_UNTIL, LOCAL, LOCAL_FACTORS
from tocsin.experiment.study import StudyData
from tocsin.experiment.verdict import ClaimVerdict, Holds, judge, judge_cases, not_measured

TRIGGER: Final = 0.1
DOUBLED: Final = LOCAL.doubled_at
CONVERGED: Final = 1800.0
"""When the paper's brokers are balanced; and, after publishers publish more, at this time:"""
CONVERGED_AGAIN: Final = 3400.0
CROWDED: Final = "B1"
OVERLOADED: Final = 0.95
EMPTIED: Final = 1400.0
"""When the paper's B1 has nobody left; so much earlier or later counts as the same."""
EMPTIED_WITHIN: Final = 100.0
_NOISE: Final = 0.01
"""Accuracies that differ by less are taken for the same."""


def verdicts(data: StudyData) -> list[ClaimVerdict]:
    """All of them."""
    edges, messages, estimates = data.of(EdgeRow), data.of(MessageRow), data.of(EstimateRow)
    main = OverlayCourse.of(edges, MAIN)
    return [
        converges(main),
        converges_again(main),
        empties(main),
        within_threshold(main),
        thresholds(edges),
        proportional(main),
        delayed(main, OverlayCourse.of(edges, UNBALANCED)),
        costs_little(main, messages),
        estimated(estimates),
        sampled(estimates),
    ]


def converges(course: OverlayCourse) -> ClaimVerdict:
    """Balanced at 1,800 s."""
    claim = "Balancing converges by 1,800 s: all metrics of all edges are within 0.1 of each other (6a to 6c)"
    if not course:
        return not_measured(claim)
    return _judge_convergence(claim, course.converged_at(JOINING_UNTIL, DOUBLED, TRIGGER), CONVERGED)


def converges_again(course: OverlayCourse) -> ClaimVerdict:
    """And again at 3,400 s, if there is anything to be made even."""
    claim = "The imbalance at 3,000 s, when half of the publishers publish twice as much, is gone by 3,400 s"
    if not course or course.end <= CONVERGED_AGAIN:
        return not_measured(claim)
    most = {name: course.highest_difference(value, DOUBLED, course.end) for name, value in METRICS.items()}
    if max(most.values()) <= TRIGGER:
        said = ", ".join(f"{name} {difference:.3f}" for name, difference in most.items())
        why = "no imbalance arises: the load of all edges grows by about as much"
        return ClaimVerdict(claim, f"the largest differences from 3,000 s on: {said}", Holds.UNKNOWN, why)
    return _judge_convergence(claim, course.converged_at(DOUBLED, course.end, TRIGGER), CONVERGED_AGAIN)


def _judge_convergence(claim: str, at: float | None, by: float) -> ClaimVerdict:
    said = "not by then" if at is None else f"from {at:,.0f} s on"
    why = "a difference is left of which nothing can be done without making another larger"
    return judge(claim, said, at is not None and at <= by, why)


def empties(course: OverlayCourse) -> ClaimVerdict:
    """B1 gives everybody away before it gets its share."""
    claim = "B1, overloaded while subscribers join, gives all of them away (at 1,400 s) before it gets its share"
    rows = [row for row in course.of_broker(CROWDED) if JOINING_UNTIL / 2 < row.seconds <= DOUBLED] if course else []
    if not rows:
        return not_measured(claim)
    fewest, most = min(rows, key=lambda row: row.subscribers), max(row.input for row in course.of_broker(CROWDED))
    share = rows[-1].subscribers
    said = (
        f"B1's input ratio is {most:.2f} at the most; the fewest subscribers it has then are {fewest.subscribers}, at "
        f"{fewest.seconds:,.0f} s, and {share} in the end"
    )
    sheds = most > OVERLOADED and fewest.subscribers < share / 2
    held = [sheds, sheds and not fewest.subscribers, sheds and abs(fewest.seconds - EMPTIED) <= EMPTIED_WITHIN]
    return judge_cases(claim, said, held, "an overload is over before everybody is gone")


def within_threshold(course: OverlayCourse) -> ClaimVerdict:
    """All three metrics, in the main run."""
    claim = "Afterwards input, output and matching delay of all edges are within the threshold of 0.1"
    if not course:
        return not_measured(claim)
    spans = {"before 3,000 s": (CONVERGED, DOUBLED), "after 3,400 s": (CONVERGED_AGAIN, LOCAL.seconds)}
    said, held = [], []
    for name, (since, until) in spans.items():
        if course.between(since, until):
            highest = {metric: course.highest_difference(value, since, until) for metric, value in METRICS.items()}
            differences = ", ".join(_describe_difference(course, metric, since, until) for metric in METRICS)
            said.append(f"{name}: {differences}")
            held += [value <= TRIGGER for value in highest.values()]
    return judge_cases(claim, "; ".join(said), held, "what is left cannot be exchanged without unevening the inputs")


def thresholds(rows: Sequence[EdgeRow]) -> ClaimVerdict:
    """Whatever the threshold, the input ratios keep it; the output ratios need not."""
    claim = (
        "The input difference is always below the threshold, whatever that is; the output difference need not be (6h)"
    )
    said, held = [], []
    for trigger, course in sorted(_by_trigger(rows)):
        since, until = settled_span(course)
        differences = (_describe_difference(course, metric, since, until) for metric in ("input", "output"))
        said.append(f"{trigger:g}: {', '.join(differences)}")
        held.append(course.highest_difference(input_of, since, until) <= trigger)
    if len(held) < 2:
        return not_measured(claim)
    return judge_cases(
        claim, "; ".join(said), held, "a difference is acted on when it is there, and takes a while to go"
    )


def proportional(course: OverlayCourse) -> ClaimVerdict:
    """Twice as powerful, twice as many subscribers."""
    claim = "Edges have subscribers in proportion to their power: B2 twice as many as B1, and so on (6e)"
    if not course:
        return not_measured(claim)
    last = course.between(0.0, min(DOUBLED, course.end))[-1]
    weakest = next(row.subscribers for row in last if row.broker == CROWDED)
    if not weakest:
        return judge(claim, "B1 has none", held=False)
    shares = [row.subscribers / weakest for row in last]
    said = f"{' : '.join(str(row.subscribers) for row in last)}, which is {' : '.join(f'{one:.1f}' for one in shares)}"
    held = all(abs(share / factor - 1) <= 0.25 for share, factor in zip(shares, LOCAL_FACTORS, strict=True))
    return judge(claim, f"{said}, for 1 : 2 : 4 : 10", held, "within a quarter would count")


def delayed(course: OverlayCourse, unbalanced: OverlayCourse) -> ClaimVerdict:
    """An overloaded broker is late."""
    claim = "The overloaded B1 makes deliveries take 750 times as long; balancing ends that (6d)"
    if not course:
        return not_measured(claim)
    rows = [row for row in course.of_broker(CROWDED) if row.deliveries]
    worst, after = max(row.delivery for row in rows), course.delivery(CONVERGED, DOUBLED, CROWDED)
    said = f"{worst:.3g} s at the most and {after:.3g} s afterwards, × {worst / after:,.0f}" if after else ""
    if unbalanced:
        never = max(row.delivery for row in unbalanced.of_broker(CROWDED))
        said += f"; without balancing {never:,.0f} s after {unbalanced.end:,.0f} s, and rising"
    if not after:
        return judge(claim, said, held=False)
    held = [worst / after >= 10, 375 <= worst / after <= 1500]
    return judge_cases(claim, said, held, "how long the queue gets follows from speeds that the paper does not name")


def costs_little(course: OverlayCourse, rows: Sequence[MessageRow]) -> ClaimVerdict:
    """Messages of the balancer."""
    claim = "The balancer's messages are 1.5 % of all from 1,000 to 2,000 s, and 0.2 % once it has converged (6f)"
    if not course:
        return not_measured(claim)
    joining = overhead(rows, MAIN, JOINING_UNTIL / 2, JOINING_UNTIL)
    balancing, after = overhead(rows, MAIN, 1000.0, 2000.0), overhead(rows, MAIN, 2000.0, DOUBLED)
    said = f"{balancing:.2%} and {after:.2%}; {joining:.1%} in the 500 s before, while subscribers join"
    return judge_cases(claim, said, [round(balancing, 3) <= 0.015, round(after, 3) <= 0.002])


def estimated(rows: Sequence[EstimateRow]) -> ClaimVerdict:
    """What a session would lead to."""
    claim = "Input ratios after a session are estimated with an accuracy of 91 %, including standard deviation (7a)"
    found = accuracy(select_undisturbed(rows, MAIN))
    if found is None:
        return not_measured(claim)
    least = 1 - abs(found.error) - found.deviation
    said = (
        f"{least:.1%} with the standard deviation, {found.accuracy:.1%} without, over {found.estimates} brokers of "
        f"sessions ({_describe(found)})"
    )
    return judge(claim, said, least >= 0.91)


def sampled(rows: Sequence[EstimateRow]) -> ClaimVerdict:
    """From 1 to 10 samples estimates get better, beyond 50 worse."""
    claim = "Estimates get better from 1 to 10 samples, and worse again beyond 50 (7b)"
    found = dict(sorted(_by_samples(rows)))
    if 1 not in found or 10 not in found or 50 not in found or max(found) <= 50:
        return not_measured(claim)
    said = "; ".join(f"{samples}: {one.accuracy:.0%}" for samples, one in found.items())
    beyond = [one.accuracy for samples, one in found.items() if samples > 50]
    held = [found[10].accuracy - found[1].accuracy > _NOISE, found[50].accuracy - max(beyond) > _NOISE]
    why = (
        "quotes of the same days come from the same publishers at even intervals: what is sampled stays true for longer"
    )
    return judge_cases(claim, said, held, why)


def _by_trigger(rows: Sequence[EdgeRow]) -> Iterator[tuple[float, OverlayCourse]]:
    for run in dict.fromkeys(row.run for row in rows):
        if (trigger := trigger_of(run)) is not None:
            yield trigger, OverlayCourse.of(rows, run)


def _by_samples(rows: Sequence[EstimateRow]) -> Iterator[tuple[int, Accuracy]]:
    for run in dict.fromkeys(row.run for row in rows):
        if (samples := samples_of(run)) is not None and (found := accuracy(select_undisturbed(rows, run))):
            yield samples, found


def settled_span(course: OverlayCourse) -> tuple[float, float]:
    """The last ten minutes before publishers publish more, or half of what there is after everybody has joined."""
    until = min(DOUBLED, course.end)
    return max(until - 600.0, (until + JOINING_UNTIL) / 2) if until > JOINING_UNTIL else until / 2, until


def _describe_difference(course: OverlayCourse, metric: str, since: float, until: float) -> str:
    value = METRICS[metric]
    highest = course.highest_difference(value, since, until)
    return f"{metric} {course.difference(value, since, until):.3f} (up to {highest:.3f} for a minute)"


def _describe(found: Accuracy) -> str:
    return f"mean error {found.error:+.1%}, deviation {found.deviation:.1%}"
