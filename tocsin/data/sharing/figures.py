"""A head's core as operators are shown it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.model.slices import FeedSlices, NodeFigures, NodeState, SliceFigures
from tocsin.slices.head import HeadCore
from tocsin.slices.registry import NodeMember

_MOST_TOLD: Final = 3


def feed_slices(feed: str, dataset: str, term: int, core: HeadCore, declined: Mapping[str, str]) -> FeedSlices:
    """Who owns which slice of a feed, and how the nodes are."""
    members = sorted(core.registry, key=lambda member: member.name)
    loads = {load.slice: load for member in members if member.report for load in member.report.slices}
    left_out = {
        (member.name, slice_): reason
        for member in members
        if member.report
        for slice_, reason in member.report.left_out.items()
    }
    takers = {slice_: session.taker for session in core.sessions for slice_ in session.epochs}
    slices = [
        SliceFigures(
            number,
            owned.owner,
            loads[number].rate if number in loads else 0,
            loads[number].backlog if number in loads else 0,
            core.commits.markers[number],
            core.commits.records[number],
            takers.get(number),
            owned.pause,
            left_out.get((owned.owner or "", number), ""),
        )
        for number, owned in enumerate(core.ownership.slices)
    ]
    nodes = [_node(member, [one for one in slices if one.owner == member.name]) for member in members]
    # The planners balance brokers, and say so.
    decision = core.balancer.decision.replace("broker", "node")
    return FeedSlices(feed, dataset, True, "", term, slices, nodes, core.sessions.moves, decision, dict(declined))


def failing(core: HeadCore) -> str:
    """Which nodes do not get on with slices that they have, and why, in a sentence; empty if all do."""
    found = []
    for member in sorted(core.registry, key=lambda member: member.name):
        own = set(core.ownership.of(member.name))
        if own and member.fails:
            found.append(f"node {member.name} does not get on: {member.problem or 'it has committed nothing for long'}")
        for slice_, reason in member.report.left_out.items() if member.report else ():
            if slice_ in own:
                found.append(f"slice {slice_} is left out by node {member.name}: {reason}")
    return "; ".join(found[:_MOST_TOLD])


def _node(member: NodeMember, own: list[SliceFigures]) -> NodeFigures:
    report = member.report
    return NodeFigures(
        name=member.name,
        state=_state(member),
        load=member.load.value if report else "",
        capacity=member.capacity,
        slices=len(own),
        rate=sum(one.rate for one in own),
        backlog=sum(one.backlog for one in own),
        cpu=report.cpu if report else 0.0,
        memory=report.memory if report else 0.0,
        rows=report.rows if report else 0.0,
        batch_seconds=report.batch_seconds if report else 0.0,
        problem=member.problem,
    )


def _state(member: NodeMember) -> NodeState:
    if member.connection is None:
        return "lost"
    if member.leaving:
        return "leaving"
    if member.draining:
        return "draining"
    if member.stuck:
        return "stuck"
    if member.problem:
        return "failing"
    return "joining" if member.joining else "serving"
