"""Which slice should be on which node: the brokers' planners, asked about slices.

A node is a broker with a capacity, a slice a subscriber with one BE subscription that nobody shares, and what comes for
it its rate. So every planner, bound, budget and threshold of :mod:`tocsin.balance` holds for slices as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np

from tocsin.balance.control.controller import Controller, Decision
from tocsin.balance.control.observation import Observation, Standing
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.control.triggers import Stage
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.plan import Moves, Reason
from tocsin.balance.planners.planner import Planner
from tocsin.balance.policies import planner
from tocsin.slices.actions import Decide
from tocsin.slices.classification import NodeClass
from tocsin.slices.levelling import Levelling
from tocsin.slices.messages import NodeReport
from tocsin.slices.registry import NodeMember, NodeRegistry
from tocsin.slices.sessions import Transfer

_MOST_RATE: Final = 1 << 50
_TELLING_CPU: Final = 0.5
_SPEED_RANGE: Final = (0.25, 4.0)
_SPEED_CHANGE: Final = 0.2
_SMOOTHING: Final = 0.2


def slice_thresholds() -> Thresholds:
    """As people are balanced, but sooner: a slice's move takes less than a second, and nobody is told."""
    return replace(Thresholds.product(), cool_down=10.0, settle=60.0, stale_after=10.0)


@dataclass(frozen=True)
class SlicePlanners:
    """What balances: a planner for migrations, one for shuffles, and when to act."""

    migration: Planner
    shuffle: Planner
    thresholds: Thresholds

    @classmethod
    def by_name(
        cls, migration: str = "migrate", shuffle: str = "shuffle", thresholds: Thresholds | None = None
    ) -> SlicePlanners:
        """Planners by their names, which any algorithm may have."""
        return cls(planner(migration), planner(shuffle), thresholds or slice_thresholds())


class SliceBalancer:
    """The workload by names, and questions to the controller about it. At most one is under way.

    While all nodes are underloaded, only those that drain or join are seen to. A node whose processor has more to do
    than others' with the same load counts as smaller, one that has less as larger, by a factor of four at most. Where
    one slice has more than any other node, the rest is levelled without it.
    """

    def __init__(self, planners: SlicePlanners) -> None:
        thresholds = planners.thresholds
        self._thresholds = thresholds
        migration = Levelling(planners.migration)
        self._controller = Controller(migration, planners.shuffle, thresholds)
        rest = replace(thresholds, beta=math.inf, theta=math.inf)
        self._resting = Controller(migration, planners.shuffle, rest)
        self._live = LiveWorkload()
        self._nodes: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._reported: dict[int, float] = {}
        self._subscribers: dict[int, int] = {}
        self._slices: dict[int, int] = {}
        self._rates: dict[int, int] = {}
        self._speeds: dict[str, float] = {}
        self._known: dict[int, float] = {}
        self._settled: list[int] = []
        self._new: list[NodeMember] = []
        self._asked, self._open = 0, False
        self.decision = "nothing was decided yet"

    def join(self, member: NodeMember) -> None:
        """A node has come, or come back with another capacity."""
        if member.name not in self._nodes:
            number = self._nodes[member.name] = self._live.add_broker(member.capacity)
            self._names[number] = member.name
        self._resize(member)

    def leave(self, node: str) -> None:
        """A node that owns nothing is gone."""
        number = self._nodes.pop(node)
        del self._names[number], self._known[number]
        self._reported.pop(number, None)
        self._speeds.pop(node, None)
        self._live.remove_broker(number)

    def own(self, slice_: int, node: str) -> None:
        """A slice has an owner, or another one."""
        number = self._nodes[node]
        if slice_ in self._subscribers:
            self._live.move(self._subscribers[slice_], number)
            self._settled.append(slice_)
            return
        subscriber = self._live.add_subscriber(number)
        self._subscribers[slice_], self._slices[subscriber] = subscriber, slice_
        subscription = self._live.add_subscription(self._rates.get(slice_, 0))
        self._live.subscribe(subscriber, [subscription])

    def disown(self, slice_: int) -> None:
        """A slice has no owner any more; what came for it last is remembered."""
        subscriber = self._subscribers.pop(slice_, None)
        if subscriber is None:
            return
        del self._slices[subscriber]
        (subscription,) = self._live.held_by(subscriber)
        self._live.remove_subscriber(subscriber)
        self._live.remove_subscription(int(subscription))

    def report(self, now: float, member: NodeMember, report: NodeReport, owned: Iterable[int]) -> None:
        """What comes for a node's own slices, and how busy it is with them."""
        self._reported[self._nodes[member.name]] = now
        mine = set(owned)
        rates = {
            load.slice: max(0, min(int(load.rate), _MOST_RATE))
            for load in report.slices
            if load.slice in mine and load.slice in self._subscribers
        }
        if rates:
            held = [int(self._live.held_by(self._subscribers[slice_])[0]) for slice_ in rates]
            self._live.set_rates(held, list(rates.values()))
            self._rates.update(rates)
        self._gauge(member, report, sum(rates.values()))

    def place(
        self, slices: Iterable[int], nodes: list[NodeMember], avoid: Mapping[int, str | None] | None = None
    ) -> list[tuple[int, str]]:
        """Owners for slices that have none: the heaviest first, each to where the load is then lowest.

        Whom a slice is to ``avoid`` gets it only if there is nobody else.
        """
        loads = dict(zip(self._live.brokers.tolist(), self._live.figures().loads.tolist(), strict=True))
        counts = dict(zip(self._live.brokers.tolist(), self._live.population.tolist(), strict=True))
        seats = {member.name: self._capacity(member) for member in nodes}
        placed = []
        for slice_ in sorted(slices, key=lambda each: (-self._rates.get(each, 0), each)):
            rate = 2 * self._rates.get(slice_, 0)

            def cost(name: str, rate: int = rate) -> tuple[float, float, str]:
                number, capacity = self._nodes[name], seats[name]
                return loads[number] + rate / capacity, (counts[number] + 1) / capacity, name

            shunned = (avoid or {}).get(slice_)
            chosen = min([name for name in seats if name != shunned] or seats, key=cost)
            number = self._nodes[chosen]
            loads[number] += rate / seats[chosen]
            counts[number] += 1
            placed.append((slice_, chosen))
        return placed

    def look(self, now: float, registry: NodeRegistry) -> Decide | None:
        """One round: a question to the controller, if anything calls for a plan."""
        if self._open or not self._nodes:
            return None
        moves = self._moves(self._settled)
        self._settled.clear()
        self._controller.carried_out(now, moves)
        self._resting.carried_out(now, moves)
        self._renew(registry)
        observed = self._observe(registry)
        self._welcome(now, observed, registry)
        idle = all(member.load is NodeClass.UNDERLOADED for member in registry)
        controller = self._resting if idle else self._controller
        stages, self.decision = controller.due(now, observed)
        if not stages:
            return None
        self._asked += 1
        self._open = True
        self._new = [member for member in registry if self._nodes[member.name] in observed.joining]
        snapshot = self._live.snapshot()
        return Decide(self._asked, controller, now, replace(observed, snapshot=lambda: snapshot))

    def take_up(self, round_: int, decision: Decision) -> list[Transfer]:
        """What the controller wants moved, as far as it still fits: from node to node."""
        if round_ != self._asked or not self._open:
            return []
        self._open = False
        self.decision = f"{decision.stage}: {decision.reason}"
        if any(refused.stage is Stage.JOIN for refused in decision.refused):
            self._settle_newcomers()
        transfers: dict[tuple[str, str], list[int]] = {}
        moves = decision.moves
        if moves is not None:
            for subscriber, source, goal in zip(moves.subscriber, moves.source, moves.destination, strict=True):
                slice_, giver, taker = self._slices.get(int(subscriber)), self._names.get(source), self._names.get(goal)
                if slice_ is not None and giver and taker:
                    transfers.setdefault((giver, taker), []).append(slice_)
        return [Transfer(giver, taker, tuple(slices)) for (giver, taker), slices in transfers.items()]

    def loads(self) -> dict[str, float]:
        """The nodes' planned loads over their capacities, as the controller sees them."""
        pairs = zip(self._live.brokers.tolist(), self._live.figures().loads.tolist(), strict=True)
        return {self._names[number]: load for number, load in pairs}

    def _renew(self, registry: NodeRegistry) -> None:
        """Who has no slice is as new, whatever it has lost them by: it was emptied, or away for a moment."""
        empty = {number for number, slices in zip(self._live.brokers, self._live.population, strict=True) if not slices}
        for member in registry:
            member.joining |= self._nodes[member.name] in empty

    def _observe(self, registry: NodeRegistry) -> Observation:
        connected = [member for member in registry if member.connection is not None]
        return Observation.of(
            self._live,
            reported=self._reported,
            draining=[self._nodes[member.name] for member in connected if member.empties],
            pinned=[self._nodes[member.name] for member in registry if _is_out(member)],
            joining=[
                self._nodes[member.name]
                for member in connected
                if member.joining and not member.empties and not member.fails
            ],
            names=self._names,
        )

    def _welcome(self, now: float, observed: Observation, registry: NodeRegistry) -> None:
        """Joining nodes that have their share are no longer new; as long as nothing comes, there is none to have."""
        if not any(self._rates.values()):
            return
        standing = Standing.of(now, observed, self._thresholds)
        for member in registry:
            if member.joining and self._nodes[member.name] in standing.open - standing.joining:
                member.joining = False

    def _settle_newcomers(self) -> None:
        """There is no more for those that join. Who has something is new no longer; who has nothing may yet get it."""
        loads = self.loads()
        for member in self._new:
            if loads.get(member.name):
                member.joining = False

    def _moves(self, slices: list[int]) -> Moves:
        who = np.array([self._subscribers[each] for each in dict.fromkeys(slices) if each in self._subscribers])
        nowhere = np.zeros(len(who), np.int32)
        return Moves(who.astype(np.int64), nowhere, nowhere, [Reason.OVERLOAD] * len(who))

    def _gauge(self, member: NodeMember, report: NodeReport, load: int) -> None:
        """How much a node does with its processor, smoothed; what is not busy tells nothing."""
        if load <= 0 or not _TELLING_CPU <= report.cpu <= 1.0:
            return
        speed = load / report.cpu / member.capacity
        before = self._speeds.get(member.name, speed)
        self._speeds[member.name] = before + _SMOOTHING * (speed - before)
        if abs(self._capacity(member) / self._known[self._nodes[member.name]] - 1) > _SPEED_CHANGE:
            self._resize(member)

    def _resize(self, member: NodeMember) -> None:
        number = self._nodes[member.name]
        self._known[number] = self._capacity(member)
        self._live.set_capacity(number, self._known[number])

    def _capacity(self, member: NodeMember) -> float:
        """What a node can do: as it said, and as it was seen to do, beside what others do."""
        speed = self._speeds.get(member.name)
        if speed is None:
            return member.capacity
        low, high = _SPEED_RANGE
        return member.capacity * min(max(speed / median(self._speeds.values()), low), high)


def _is_out(member: NodeMember) -> bool:
    """Whether a node takes no part: it is lost, or does not get on with what it has."""
    return member.connection is None or (member.fails and not member.empties)
