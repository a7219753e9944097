"""Plans as JSON, to be stored and sent; what is read is what was written, to the last digit."""

from __future__ import annotations

import msgspec
import numpy as np

from tocsin.balance.model.plan import LoadFigures, Moves, Plan, PlanStatus, Reason
from tocsin.errors import InvalidError


class _Figures(msgspec.Struct, forbid_unknown_fields=True):
    incoming: list[int]
    outgoing: list[int]
    loads: list[float]


class _Moves(msgspec.Struct, forbid_unknown_fields=True):
    subscriber: list[int]
    source: list[int]
    destination: list[int]
    reason: list[Reason]


class _Plan(msgspec.Struct, forbid_unknown_fields=True):
    planner: str
    status: PlanStatus
    moves: _Moves
    assignment: list[int]
    before: _Figures
    after: _Figures
    steps: list[tuple[int, int, int]]
    lower_bound: float
    moves_lower_bound: int


def encode(plan: Plan) -> bytes:
    """A plan as JSON."""
    moves = plan.moves
    return msgspec.json.encode(
        _Plan(
            plan.planner,
            plan.status,
            _Moves(moves.subscriber.tolist(), moves.source.tolist(), moves.destination.tolist(), moves.reason),
            plan.assignment.tolist(),
            _from_figures(plan.before),
            _from_figures(plan.after),
            plan.steps.tolist(),
            plan.lower_bound,
            plan.moves_lower_bound,
        )
    )


def decode(text: bytes | str) -> Plan:
    """A plan from its JSON. Anything else is an :class:`InvalidError`."""
    try:
        read = msgspec.json.decode(text, type=_Plan)
        _check(read)
        return _to_plan(read)
    except (msgspec.DecodeError, OverflowError) as error:
        raise InvalidError(f"this is not a plan: {error}") from None


def _from_figures(figures: LoadFigures) -> _Figures:
    return _Figures(figures.incoming.tolist(), figures.outgoing.tolist(), figures.loads.tolist())


def _to_figures(read: _Figures) -> LoadFigures:
    return LoadFigures(
        np.array(read.incoming, np.int64), np.array(read.outgoing, np.int64), np.array(read.loads, float)
    )


def _to_plan(read: _Plan) -> Plan:
    moves = read.moves
    return Plan(
        read.planner,
        read.status,
        Moves(
            np.array(moves.subscriber, np.int64),
            np.array(moves.source, np.int32),
            np.array(moves.destination, np.int32),
            moves.reason,
        ),
        np.array(read.assignment, np.int32),
        _to_figures(read.before),
        _to_figures(read.after),
        np.array(read.steps, np.int64).reshape(-1, 3),
        read.lower_bound,
        read.moves_lower_bound,
    )


def _check(read: _Plan) -> None:
    moves, brokers, subscribers = read.moves, len(read.before.loads), len(read.assignment)
    lengths = {len(moves.subscriber), len(moves.source), len(moves.destination), len(moves.reason)}
    figures = {len(row) for of in (read.before, read.after) for row in (of.incoming, of.outgoing, of.loads)}
    if len(lengths) > 1 or len(figures) > 1:
        raise InvalidError("this is not a plan: its columns are not of one length")
    if any(not -1 <= broker < brokers for row in (moves.source, moves.destination, read.assignment) for broker in row):
        raise InvalidError(f"this is not a plan: it names a broker that is neither 0 to {brokers - 1} nor −1, nowhere")
    if any(not 0 <= subscriber < subscribers for subscriber in moves.subscriber):
        raise InvalidError(f"this is not a plan: it moves a subscriber that is not among 0 to {subscribers - 1}")
