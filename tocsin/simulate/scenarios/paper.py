"""The simulation of the paper's section 6.2.1, and larger ones of its kind.

Ten channels, two for each of the periods 5, 10, 20, 30 and 60 s, with 100 BE subscriptions each; all subscribers log in
at the beginning and make 10 to 30 subscriptions each within the first 8 minutes. Every minute a quarter of the BE
subscriptions is chosen to bring more at some time within the next 3 minutes, and as much as before 4 to 6 minutes after
that. What the paper leaves open is chosen here: the rates' mean and deviation (so that the mean load passes its β of
300 MB/s), how much more they bring, and where everybody is (so that the nearest broker is that of more than 2,000 for
one, and of less than 500 for others).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.workload import Floats, Int64s
from tocsin.simulate.scenario import (
    BackendSubscriptions,
    InitialLocations,
    Scenario,
    ScenarioBroker,
    ScenarioChannel,
    ScenarioRates,
    SubscriptionChanges,
    Visits,
)

PERIODS: Final = (5.0, 10.0, 20.0, 30.0, 60.0)
MINUTE: Final = 60.0


@dataclass(frozen=True)
class Paper:
    """What the scenario is made from; the defaults are the paper's.

    Args:
        backend_subscriptions: of each channel.
        each: subscriptions of a subscriber, at least and at most.
        rate: mean and deviation of what a BE subscription brings, bytes per second.
        popularity: exponent of the Zipf law by which subscriptions are chosen; 0 is uniform.
        communities: groups of people who want the same; 0 for none.
        skew: exponent of the Zipf law of how many live near each broker.
        more: when it brings more, then so many times as much, at least and at most.
        capacity: what each broker can send, bytes per second.
    """

    subscribers: int = 10_000
    brokers: int = 10
    channels: int = 10
    backend_subscriptions: int = 100
    each: tuple[int, int] = (10, 30)
    seconds: float = 30 * MINUTE
    subscribing: float = 8 * MINUTE
    rate: tuple[float, float] = (20_000.0, 5_000.0)
    popularity: float = 0.0
    communities: int = 0
    skew: float = 0.8
    more: tuple[float, float] = (1.5, 2.5)
    capacity: float | None = None
    periods: tuple[float, ...] = field(default=PERIODS)


def paper(options: Paper | None = None, seed: int = 0) -> Scenario:
    """The scenario."""
    o, rng = options or Paper(), np.random.default_rng(seed)
    count = o.channels * o.backend_subscriptions
    channels = [ScenarioChannel(f"channel{n}", float(np.resize(o.periods, o.channels)[n])) for n in range(o.channels)]
    channel_of = np.repeat(np.arange(o.channels), o.backend_subscriptions)
    period_of = np.array([channel.period for channel in channels])[channel_of]
    first = np.maximum(rng.normal(*o.rate, count), o.rate[0] / 20) * period_of
    sites, locations = _locations(o, rng)
    return Scenario(
        "paper",
        o.seconds,
        [ScenarioBroker(f"broker{n}", x, y, o.capacity) for n, (x, y) in enumerate(sites.tolist())],
        channels,
        BackendSubscriptions(channel_of.tolist(), np.round(first).tolist()),
        InitialLocations(locations[:, 0].tolist(), locations[:, 1].tolist()),
        logins=Visits(np.sort(rng.uniform(0, 10, o.subscribers)).round(3).tolist(), list(range(o.subscribers))),
        subscribes=_subscribes(o, rng, seed),
        rates=_fluctuation(o, rng, first),
    )


def _locations(o: Paper, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Brokers on a grid of kilometres, and everybody within a few hundred metres of one."""
    columns = int(np.ceil(np.sqrt(o.brokers)))
    sites = np.array([(1000.0 * (n % columns), 1000.0 * (n // columns)) for n in range(o.brokers)])
    shares = 1.0 / np.arange(1, o.brokers + 1) ** o.skew
    home = rng.choice(o.brokers, o.subscribers, p=shares / shares.sum())
    return sites, (sites[home] + rng.normal(0, 120, (o.subscribers, 2))).round(1)


def _subscribes(o: Paper, rng: np.random.Generator, seed: int) -> SubscriptionChanges:
    kind = InstanceKind(
        o.subscribers,
        o.brokers,
        o.channels * o.backend_subscriptions,
        o.each,
        popularity=o.popularity,
        communities=o.communities,
    )
    workload, _ = make(kind, seed)
    who = np.repeat(np.arange(o.subscribers), np.diff(workload.indptr))
    # Ten seconds in, so that everybody is there.
    at = rng.uniform(10, o.subscribing, len(who)).round(3)
    order = np.argsort(at, kind="stable")
    return SubscriptionChanges(at[order].tolist(), who[order].tolist(), workload.idx[order].tolist())


def _fluctuation(o: Paper, rng: np.random.Generator, first: Floats) -> ScenarioRates:
    """Ups and downs as factors; one that is chosen again while it is up goes up further."""
    rows: list[tuple[float, int, float]] = []
    for minute in np.arange(0, o.seconds, MINUTE):
        for backend in _quarter(rng, len(first)).tolist():
            up, factor = float(minute + rng.uniform(0, 3 * MINUTE)), float(rng.uniform(*o.more))
            rows += [(up, backend, factor), (up + float(rng.uniform(4 * MINUTE, 6 * MINUTE)), backend, 1 / factor)]
    now, table = first.copy(), []
    for at, backend, factor in sorted(rows):
        now[backend] *= factor
        if at <= o.seconds:
            table.append((round(at, 3), backend, float(round(now[backend]))))
    return ScenarioRates([row[0] for row in table], [row[1] for row in table], [row[2] for row in table])


def _quarter(rng: np.random.Generator, count: int) -> Int64s:
    return rng.choice(count, count // 4, replace=False)
