"""What the chapter says of slices, and what we want of them, judged by the rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tocsin.experiment.slices.rows import Evenness, Growth, Takeover
from tocsin.experiment.verdict import ClaimVerdict, judge, judge_cases, not_measured

_OURS: Final = "migrate"


def verdicts(even: Sequence[Evenness], taken: Sequence[Takeover], grown: Sequence[Growth]) -> list[ClaimVerdict]:
    """All of them."""
    return [
        finer_is_more_even(even),
        balanced(even),
        thousand_nodes(even),
        short_pause(even),
        nothing_missing(even),
        taken_over(taken),
        grows(grown),
        shrinks(grown),
    ]


def finer_is_more_even(rows: Sequence[Evenness]) -> ClaimVerdict:
    """The chapter's balls into bins."""
    claim = "More slices for the same nodes can be spread more evenly (3.1)"
    own = sorted((row for row in rows if row.planner == _OURS), key=lambda row: row.slices)
    own = [row for row in own if row.nodes == min((each.nodes for each in own), default=0)]
    if len(own) < 2:
        return not_measured(claim)
    said = "; ".join(f"{row.slices:,} slices: {row.highest_before:.2f} → {row.highest_after:.2f}" for row in own)
    pairs = list(pairwise(own))
    held = all(more.highest_after <= less.highest_after * 1.01 for less, more in pairs)
    return judge(claim, f"highest load over the mean, {said}", held)


def balanced(rows: Sequence[Evenness]) -> ClaimVerdict:
    """As low as it is meant to be, or as the heaviest slice allows."""
    claim = "With ten slices a node, the highest load ends within 20 % of the mean, or of the heaviest slice"
    own = [row for row in rows if row.planner == _OURS and row.slices >= 10 * row.nodes]
    said = "; ".join(
        f"{row.nodes:,} nodes: {row.highest_before:.2f} → {row.highest_after:.2f} (bound {row.bound:.2f})"
        for row in own
    )
    return judge_cases(claim, said, [row.highest_after <= 1.2 * row.bound for row in own])


def thousand_nodes(rows: Sequence[Evenness]) -> ClaimVerdict:
    """The chapter's size."""
    claim = "It works with thousands of nodes (3)"
    most = max(rows, key=lambda row: row.nodes, default=None)
    if most is None or most.nodes < 1_000:
        return not_measured(claim)
    said = f"{most.nodes:,} nodes, {most.publishers:,} publishers: cov {most.cov_before:.3f} → {most.cov_after:.3f}"
    return judge(claim, f"{said} by {most.moves:,} moves", most.cov_after < most.cov_before / 2)


def short_pause(rows: Sequence[Evenness]) -> ClaimVerdict:
    """What a move costs those who wait for its records."""
    claim = "A slice that moves pauses for at most a second (p99)"
    moved = [row for row in rows if row.moves]
    said = "; ".join(
        f"{row.nodes:,} nodes, {row.slices:,} slices: p50 {_time(row.pause_p50)}, p99 {_time(row.pause_p99)}, "
        f"beside {_time(row.batch)} from batch to batch"
        for row in moved
    )
    return judge_cases(claim, said, [row.pause_p99 <= 1.0 for row in moved], "it waits for the giver's batches in hand")


def nothing_missing(rows: Sequence[Evenness]) -> ClaimVerdict:
    """Whatever moved, every record was processed."""
    claim = "No record is lost by moving slices (3.4)"
    processed, missing = sum(row.processed for row in rows), sum(row.missing for row in rows)
    verdict = judge_cases(claim, f"{processed:,} processed, {missing:,} missing", [row.missing == 0 for row in rows])
    return verdict._replace(sizeless=True)


def taken_over(rows: Sequence[Takeover]) -> ClaimVerdict:
    """A dead node's slices."""
    claim = "A dead node's slices are processed by others within ten seconds"
    said = "; ".join(f"{row.slices} slices: {_time(row.first)} to {_time(row.last)}" for row in rows)
    return judge_cases(claim, said, [row.last <= 10.0 for row in rows])._replace(sizeless=True)


def grows(rows: Sequence[Growth]) -> ClaimVerdict:
    """Nodes are added while data flows."""
    claim = "When the load doubles, nodes join, and what had to wait is caught up with (3.4)"
    double = [row for row in rows if row.factor == 2.0]
    if not double:
        return not_measured(claim)
    most, last = max(row.behind for row in double), double[-1]
    said = f"{double[0].nodes} → {last.nodes} nodes; {_time(most)} behind at most, {_time(last.behind)} at the end"
    return judge(claim, said, last.owners > double[0].owners and last.behind < 2.0 and last.busiest < 1.0)


def shrinks(rows: Sequence[Growth]) -> ClaimVerdict:
    """Idle nodes leave while data flows."""
    claim = "When the load halves, a node is emptied and leaves, and nobody waits for it (3.4)"
    double = [row for row in rows if row.factor == 2.0]
    after = [row for row in rows if double and row.second > double[-1].second]
    if not after:
        return not_measured(claim)
    most = max(row.behind for row in after[5:])
    said = f"{double[-1].nodes} → {after[-1].nodes} nodes; {_time(most)} behind at most"
    return judge(claim, said, after[-1].nodes < double[-1].nodes and most < 2.0)


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
