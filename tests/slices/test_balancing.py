"""Which slices go where: by what comes for them, by what nodes can do, and by what operators want."""

from __future__ import annotations

import pytest
from msgspec import structs

from tocsin.balance.control.thresholds import Thresholds
from tocsin.slices.balancing import SliceBalancer, SlicePlanners, slice_thresholds
from tocsin.slices.classification import NodeClass, classify
from tocsin.slices.elasticity import Elasticity
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Hello, NodeReport, SliceLoad
from tocsin.slices.registry import NodeMember, NodeRegistry
from tocsin.slices.sessions import Transfer


def report(cpu: float = 0.6, memory: float = 0.1, slices: dict[int, int] | None = None, backlog: int = 0) -> NodeReport:
    loads = [SliceLoad(number, rate, backlog) for number, rate in (slices or {}).items()]
    return NodeReport(cpu, memory, 100.0, 0.1, loads)


class Scene:
    """Nodes with slices, as a balancer sees them."""

    def __init__(self, planners: SlicePlanners | None = None, **capacities: float) -> None:
        self.registry = NodeRegistry(SliceLimits())
        self.balancer = SliceBalancer(planners or SlicePlanners.by_name())
        self.owned: dict[str, dict[int, int]] = {name: {} for name in capacities}
        for number, (name, capacity) in enumerate(capacities.items()):
            self.balancer.join(self.registry.add(0.0, number, Hello(name, capacity, {})))

    def give(self, node: str, *rates: int) -> None:
        for rate in rates:
            slice_ = sum(map(len, self.owned.values()))
            self.owned[node][slice_] = rate
            self.balancer.own(slice_, node)

    def told(self, now: float, **cpus: float) -> None:
        for name, slices in self.owned.items():
            member = self.registry.get(name)
            assert member
            said = report(cpus.get(name, min(sum(slices.values()) / member.capacity / 8000, 1.0)), slices=slices)
            self.registry.report(member, said)
            self.balancer.report(now, member, said, slices)

    def plan(self, now: float = 100.0) -> list[Transfer]:
        """What a round leads to."""
        question = self.balancer.look(now, self.registry)
        if question is None:
            return []
        return self.balancer.take_up(question.round, question.controller.decide(now, question.observed))

    def loads(self, transfers: list[Transfer]) -> dict[str, int]:
        """What comes for each node's slices when these have moved."""
        for transfer in transfers:
            for slice_ in transfer.slices:
                self.owned[transfer.taker][slice_] = self.owned[transfer.giver].pop(slice_)
                self.balancer.own(slice_, transfer.taker)
        return {name: sum(slices.values()) for name, slices in self.owned.items()}


def test_slices_leave_the_node_that_has_most() -> None:
    scene = Scene(a=1, b=1)
    scene.give("a", *[1000] * 8)
    scene.give("b", 1000, 1000)
    scene.told(100.0)
    transfers = scene.plan()
    assert {(each.giver, each.taker) for each in transfers} == {("a", "b")}
    assert scene.loads(transfers) == {"a": 5000, "b": 5000}


def test_a_node_that_can_do_three_times_as_much_gets_three_times_as_much() -> None:
    scene = Scene(a=1, b=3)
    scene.give("a", *[1000] * 8)
    scene.give("b", *[1000] * 4)
    scene.told(100.0)
    assert scene.loads(scene.plan()) == {"a": 3000, "b": 9000}


def test_a_node_that_turns_out_to_be_slower_counts_as_smaller() -> None:
    scene = Scene(a=1, b=1, c=1)
    for name in "abc":
        scene.give(name, *[1000] * 12)
    for second in range(40):
        scene.told(60.0 + second, a=1.0, b=0.5, c=0.5)
    loads = scene.loads(scene.plan())
    assert loads["a"] < 9000
    assert min(loads["b"], loads["c"]) > 12_000


def test_a_node_that_drains_is_emptied_and_one_that_joins_gets_its_share() -> None:
    scene = Scene(a=1, b=1, c=1)
    scene.give("a", *[1000] * 6)
    scene.give("b", *[1000] * 6)
    scene.told(100.0)
    assert scene.loads(scene.plan()) == {"a": 4000, "b": 4000, "c": 4000}
    member = scene.registry.get("b")
    assert member
    member.draining = True
    scene.told(300.0)
    assert scene.loads(scene.plan(300.0)) == {"a": 6000, "b": 0, "c": 6000}


def test_nothing_moves_while_nobody_has_much_to_do() -> None:
    scene = Scene(a=1, b=1)
    scene.give("a", *[1000] * 8)
    scene.give("b", 1000, 1000)
    for member in scene.registry:
        member.joining = False
    scene.told(100.0, a=0.1, b=0.1)
    assert scene.plan() == []


def test_nothing_moves_that_moved_just_now() -> None:
    scene = Scene(a=1, b=1)
    scene.give("a", *[1000] * 8)
    scene.give("b", 1000, 1000)
    scene.told(100.0)
    scene.loads(scene.plan())
    scene.owned["a"] = dict.fromkeys(scene.owned["a"], 3000)
    scene.told(103.0)
    assert scene.plan(103.0) == []


@pytest.mark.parametrize("name", ["ldm", "migrate"])
def test_any_planner_can_balance(name: str) -> None:
    scene = Scene(SlicePlanners.by_name(name, "gsh", slice_thresholds()), a=1, b=1)
    scene.give("a", *[1000] * 8)
    scene.give("b", 1000, 1000)
    scene.told(100.0)
    assert max(scene.loads(scene.plan()).values()) <= 6000


def test_slices_without_an_owner_go_to_where_least_is_the_heaviest_first() -> None:
    scene = Scene(a=1, b=1)
    scene.give("a", 900, 100, 500)
    scene.told(100.0)
    for slice_ in (0, 1, 2):
        scene.balancer.disown(slice_)
    placed = dict(scene.balancer.place([0, 1, 2], list(scene.registry)))
    assert placed[0] != placed[2] == placed[1]


def test_without_any_rates_slices_are_spread_by_their_number() -> None:
    scene = Scene(a=1, b=3)
    placed = [node for _, node in scene.balancer.place(range(8), list(scene.registry))]
    assert (placed.count("a"), placed.count("b")) == (2, 6)


def test_what_a_node_says_of_others_slices_and_nonsense_rates_change_nothing() -> None:
    scene = Scene(a=1, b=1)
    scene.give("a", 1000)
    scene.give("b", 1000)
    scene.told(100.0)
    member = scene.registry.get("a")
    assert member
    before = scene.balancer.loads()
    scene.balancer.report(101.0, member, report(slices={1: 99, 7: 5, -3: 5}), [0])
    assert scene.balancer.loads() == before
    scene.balancer.report(101.0, member, report(slices={0: -5}), [0])
    assert scene.balancer.loads()["a"] == 0


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (report(cpu=0.85), NodeClass.OVERLOADED),
        (report(cpu=0.5), NodeClass.NORMAL),
        (report(cpu=0.2), NodeClass.UNDERLOADED),
        (report(cpu=0.2, memory=0.95), NodeClass.OVERLOADED),
        (report(cpu=0.2, memory=0.7), NodeClass.NORMAL),
        (report(cpu=0.2, slices={0: 100}, backlog=600), NodeClass.OVERLOADED),
        (report(cpu=0.2, slices={0: 100}, backlog=200), NodeClass.NORMAL),
    ],
)
def test_a_node_is_overloaded_normal_or_underloaded(said: NodeReport, expected: NodeClass) -> None:
    assert classify(NodeClass.NORMAL, said) is expected


def test_a_class_is_not_left_at_its_border() -> None:
    assert classify(NodeClass.OVERLOADED, report(cpu=0.75)) is NodeClass.OVERLOADED
    assert classify(NodeClass.OVERLOADED, report(cpu=0.65)) is NodeClass.NORMAL
    assert classify(NodeClass.UNDERLOADED, report(cpu=0.33)) is NodeClass.UNDERLOADED
    assert classify(NodeClass.UNDERLOADED, report(cpu=0.4)) is NodeClass.NORMAL


def members(*cpus: float) -> list[NodeMember]:
    made = [NodeMember(f"n{number}", 1.0, 0.0, number) for number in range(len(cpus))]
    for member, cpu in zip(made, cpus, strict=True):
        member.report = report(cpu)
    return made


def test_a_node_is_spared_when_the_others_could_do_its_work_for_a_while() -> None:
    elasticity = Elasticity(seconds=30.0)
    nodes = members(0.2, 0.2, 0.2)
    assert elasticity.spare(0.0, nodes) is None
    assert elasticity.spare(29.0, nodes) is None
    assert elasticity.spare(30.0, nodes) is nodes[0]
    nodes[0].draining = True
    assert elasticity.spare(100.0, nodes) is None


def test_nobody_is_spared_who_is_needed() -> None:
    elasticity = Elasticity(seconds=0.0)
    assert elasticity.spare(0.0, members(0.4, 0.4, 0.4)) is None
    assert elasticity.spare(0.0, members(0.1)) is None


def test_who_reads_nothing_is_no_reason_to_spare_another_nor_to_want_none() -> None:
    elasticity = Elasticity(seconds=0.0)
    nodes = members(0.1, 0.0)
    assert nodes[1].report is not None
    nodes[1].report = structs.replace(nodes[1].report, problem="the log does not answer")
    assert elasticity.spare(0.0, nodes) is None
    nodes[0].report = report(0.9)
    elasticity.spare(1.0, nodes)
    assert elasticity.wanted == 1


def test_another_node_is_wanted_when_all_are_busy_for_a_while() -> None:
    elasticity = Elasticity(seconds=30.0)
    for now in (0.0, 20.0):
        elasticity.spare(now, members(0.9, 0.8))
        assert elasticity.wanted == 0
    elasticity.spare(31.0, members(0.9, 0.8))
    assert elasticity.wanted == 1


def test_the_controllers_thresholds_are_the_products_but_for_the_times() -> None:
    assert slice_thresholds().alpha == Thresholds.product().alpha
    assert slice_thresholds().cool_down < Thresholds.product().cool_down


def test_a_node_that_joins_before_anything_comes_gets_its_share_when_something_does() -> None:
    scene = Scene(a=1.0, b=1.0)
    scene.give("a", 0, 0, 0, 0)
    scene.told(10.0)
    assert scene.plan(11.0) == []
    scene.owned["a"] = dict.fromkeys(scene.owned["a"], 100)
    scene.told(20.0, a=0.01, b=0.01)
    assert scene.loads(scene.plan(21.0)) == {"a": 200, "b": 200}


def test_whom_nobody_may_spare_stays_and_the_next_smallest_goes() -> None:
    elasticity = Elasticity(seconds=0.0, keep=("n0",))
    spared = elasticity.spare(0.0, members(0.1, 0.1))
    assert spared is not None
    assert spared.name == "n1"


def test_a_node_is_spared_only_if_each_of_its_feeds_can_do_without_it() -> None:
    elasticity = Elasticity(seconds=0.0)
    idle, busy = members(0.1, 0.1, 0.1), members(0.6, 0.6)
    assert elasticity.spare(0.0, idle, busy) is idle[2]
    busy[1].name = "n2"
    busy[0].name = "n1"
    assert elasticity.spare(0.0, idle, busy) is idle[0]
    busy[1].name = "n0"
    assert elasticity.spare(0.0, idle, busy) is idle[2]


def test_another_node_is_wanted_when_one_feed_of_several_is_busy() -> None:
    elasticity = Elasticity(seconds=0.0)
    elasticity.spare(0.0, members(0.1, 0.1), members(0.9, 0.9))
    assert elasticity.wanted == 1
    elasticity.spare(1.0, members(0.1, 0.1), members(0.2, 0.2))
    assert elasticity.wanted == 0


def test_who_is_spare_by_turns_is_not_idle_for_long() -> None:
    elasticity = Elasticity(seconds=10.0)
    nodes = members(0.1, 0.1)
    for now in (0.0, 9.0):
        assert elasticity.spare(now, nodes) is None
    nodes[0].capacity = 2.0
    assert elasticity.spare(18.0, nodes) is None
    assert elasticity.spare(28.0, nodes) is nodes[1]
