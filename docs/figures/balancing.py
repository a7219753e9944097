"""Draws the figures of balancing.md from the library itself: ``python docs/figures/balancing.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import INCOMING, INK, OUTGOING, PALE, Drawing, Panel, panels

from tocsin.balance.bounds import lower_bound
from tocsin.balance.instances.kinds import InstanceKind, generate, make
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.explain import rate
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import LoadFigures
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Floats, Workload
from tocsin.balance.placement.placement import Newcomer
from tocsin.balance.policies import placement, planner

HERE = Path(__file__).parent
CROWD = InstanceKind(2_000, 8, 300, (5, 15), popularity=0.6)
WAVE = 100
LETTERS = "abc"


def model() -> None:
    """Three subscribers on two brokers, and the load that each brings."""
    workload = Workload(np.array([0, 2, 3, 5]), np.array([0, 1, 1, 1, 2], np.int32), np.array([50, 20, 10]), 2)
    loads = Loads(workload, np.array([0, 0, 1], np.int32))
    drawing = Drawing(640, 230, "The load of two brokers")
    drawing.box(20, 25, 110, 186, stroke=INK)
    drawing.words(75, 100, "data cluster", anchor="middle")
    for k, letter in enumerate(LETTERS):
        drawing.words(75, 120 + 14 * k, f"{letter}: {workload.rates[k]} B/s", size=11, anchor="middle")
    for broker, y in ((0, 25), (1, 145)):
        _broker(drawing, loads, broker, y)
    for subscriber, y in ((0, 30), (1, 72), (2, 166)):
        _subscriber(drawing, workload, subscriber, y)
    drawing.words(190, 222, "incoming: once for each broker", size=11, anchor="middle", fill=INCOMING)
    drawing.words(480, 222, "outgoing: once for each subscriber", size=11, anchor="middle", fill=OUTGOING)
    drawing.save(HERE / "balancing-model.svg")


def _broker(drawing: Drawing, loads: Loads, broker: int, y: float) -> None:
    drawing.box(250, y, 170, 66, stroke=INK)
    drawing.words(335, y + 22, f"broker {broker}", anchor="middle")
    sums = f"F = {loads.incoming[broker]} + {loads.outgoing[broker]} = {loads.total[broker]} B/s"
    drawing.words(335, y + 46, sums, anchor="middle", size=13)
    rates = loads.workload.rates
    for lane, k in enumerate(np.flatnonzero(loads.held[:, broker])):
        at = y + 22 + 22 * lane
        drawing.line(130, at, 250, at, INCOMING, rates[k] / 8 + 1)
        drawing.words(190, at - 6, f"{LETTERS[k]} {rates[k]}", size=11, anchor="middle")


def _subscriber(drawing: Drawing, workload: Workload, subscriber: int, y: float) -> None:
    wanted, rates = workload.held_by(subscriber), workload.rates
    for lane, k in enumerate(wanted):
        at = y + 12 + 9 * lane - 4 * (len(wanted) - 1)
        drawing.line(420, at, 540, at, OUTGOING, rates[k] / 8 + 1)
    label = " + ".join(f"{LETTERS[k]} {rates[k]}" for k in wanted)
    drawing.words(480, y + 2, label, size=11, anchor="middle")
    drawing.box(540, y, 84, 26, PALE, INK)
    drawing.words(582, y + 17, f"subscriber {subscriber}", size=11, anchor="middle")


def placed(name: str, broker_locations: Floats, locations: Floats, crowd: Workload) -> LiveWorkload:
    """A live workload in which everybody came in waves, was placed by a policy, and subscribed once the wave was in."""
    live, policy = LiveWorkload(), placement(name)
    for x, y in broker_locations:
        live.add_broker(location=(float(x), float(y)))
    for k in range(crowd.subscriptions):
        live.add_subscription(int(crowd.rates[k]))
    for begin in range(0, crowd.subscribers, WAVE):
        wave = range(begin, min(begin + WAVE, crowd.subscribers))
        for i in wave:
            location = float(locations[i, 0]), float(locations[i, 1])
            live.add_subscriber(policy.place(live.view(), Newcomer(location)), location)
        for i in wave:
            live.subscribe(i, crowd.held_by(i))
    return live


def initial() -> None:
    """Each placement policy with the same crowd."""
    rng = np.random.default_rng(4)
    crowd, _ = make(CROWD, seed=4)
    broker_locations = rng.uniform(0, 10, (CROWD.brokers, 2))
    towns = rng.uniform(0, 10, (5, 2))
    locations = towns[rng.choice(5, CROWD.subscribers, p=[0.4, 0.25, 0.15, 0.1, 0.1])] + rng.normal(0, 0.8, (2_000, 2))
    shown, bound = [], 0.0
    for name in ("nearest", "round-robin", "random", "least-loaded", "two-choices"):
        live = placed(name, broker_locations, locations, crowd)
        snapshot = live.snapshot()
        bound = lower_bound(snapshot.problem())
        shown.append(Panel(name, _note(live.figures()), live.figures()))
    panels("Loads after initial placement", shown, bound).save(HERE / "balancing-placement.svg")


def compared(file: str, title: str, kind: str, names: dict[str, dict[str, float]], target: float | None = None) -> None:
    """An instance as it begins, and after each of some planners."""
    workload, start = generate(kind, seed=1)
    problem = Problem(workload, start, target=target)
    plans = [planner(name, **settings).plan(problem) for name, settings in names.items()]
    first = Panel("before", _note(plans[0].before), plans[0].before)
    shown = [Panel(plan.planner, f"{_note(plan.after)}, {len(plan.moves):,} moved", plan.after) for plan in plans]
    panels(title, [first, *shown], plans[0].lower_bound).save(HERE / file)


def _note(figures: LoadFigures) -> str:
    return f"highest {rate(figures.max)}, cov {figures.cov:.2f}"


if __name__ == "__main__":
    model()
    initial()
    fine = {"alpha": 0.05}
    compared("balancing-migration.svg", "Loads before and after migration", "P", {"ldm": fine, "sdm": fine})
    compared("balancing-shuffle.svg", "Loads before and after a shuffle", "P", {"gsh": {}})
    compared(
        "balancing-ours.svg", "Loads before and after our planners", "P", {"gsh": {}, "migrate": {}, "shuffle": {}}
    )
