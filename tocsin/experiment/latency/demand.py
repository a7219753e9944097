"""How much the brokers of a scenario have to send."""

from __future__ import annotations

import numpy as np

from tocsin.simulate.scenario import Scenario


def mean_outgoing(scenario: Scenario) -> float:
    """Bytes per second that a broker sends on average in the second half, if none of them ever queues.

    By then everybody has subscribed, so it is what lines bring times how many hold them.
    """
    lines = scenario.lines
    holders = np.bincount(scenario.subscribes.line, minlength=len(lines.channel))
    periods = np.array([scenario.channels[channel].period for channel in lines.channel])
    return float((_mean_bytes(scenario) / periods * holders).sum()) / len(scenario.brokers)


def _mean_bytes(scenario: Scenario) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What an execution finds for each line, as a mean over the second half."""
    middle, end = scenario.seconds / 2, scenario.seconds
    found, since = np.array(scenario.lines.bytes), np.full(len(scenario.lines.bytes), middle)
    sums = np.zeros(len(found))
    for at, line, size in sorted(zip(scenario.rates.at, scenario.rates.line, scenario.rates.bytes, strict=True)):
        if at > middle:
            sums[line] += found[line] * (at - since[line])
            since[line] = at
        found[line] = size
    sums += found * (end - since)
    return np.asarray(sums / (end - middle))
