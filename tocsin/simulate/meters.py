"""λ of all BE subscriptions as arrays: the same figures as those of brokers, for all of them at once."""

from __future__ import annotations

from math import nan

import numpy as np

from tocsin.balance.model.workload import Floats
from tocsin.broker.accounting import LEAST, TOLERANCE
from tocsin.broker.holdings import Holdings
from tocsin.broker.outbox import DataRequests
from tocsin.broker.reports import DataRates
from tocsin.simulate.cluster import DataClusterModel


class KnownRates:
    """λ by the number of the BE subscription, as the data cluster knows it: whoever holds one is told at once."""

    def __init__(self, cluster: DataClusterModel, count: int) -> None:
        self._cluster, self._bes = cluster, np.arange(count + 1)
        self._at, self._rates = nan, np.zeros(count + 1)

    def at(self, now: float) -> Floats:
        """Bytes per second of each; several brokers ask at the same time."""
        if self._at != now:
            self._at, self._rates = now, self._cluster.rates.rate(now, self._bes)
            self._rates[self._rates < LEAST] = 0.0
        return self._rates


class Meters(DataRates):
    """Which of these rates a broker says to the coordinator."""

    def __init__(self, told: KnownRates, holdings: Holdings, data: DataRequests) -> None:
        super().__init__(holdings, data)
        self._told = told
        self._said = np.zeros(1)

    def changes(self, now: float) -> dict[int, float]:
        """Those that differ from what was last said of them."""
        backends, told = self._holdings.backends, self._told.at(now)
        bes = np.fromiter(backends, np.int64, len(backends))
        before, self._said = self._said, np.zeros(len(told))
        held = bes[bes < len(before)]
        self._said[held] = before[held]
        changed = bes[np.abs(told[bes] - self._said[bes]) > TOLERANCE * self._said[bes]]
        self._said[changed] = told[changed]
        return dict(zip(changed.tolist(), told[changed].tolist(), strict=True))

    def forget(self) -> None:
        """Everything is to be said again."""
        self._said[:] = 0.0
