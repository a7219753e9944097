"""Statuses of a network, as the coordinator would give them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin.coordinator.answers import BrokerSummary, NetworkStatus


def status(loads: Sequence[float], decision: str = "", people: Sequence[int] = ()) -> NetworkStatus:
    """A network whose brokers have these loads."""
    counts = people or [10] * len(loads)
    brokers = [
        BrokerSummary(f"b{n}", f"ws://b{n}", "serving", counts[n], counts[n], load, load / 10, load)
        for n, load in enumerate(loads)
    ]
    mean = float(np.mean(loads))
    cov = float(np.std(loads)) / mean if mean else 0.0
    return NetworkStatus(True, brokers, cov, mean, max(loads), sum(counts), 0, 0, 0, 0, decision)
