"""A log as a flow: how much comes for each slice, without single records; for many nodes and publishers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tocsin.simulate.clock import START
from tocsin.slices.assignment import slice_by_hash
from tocsin.slices.messages import SlicePart

Floats = npt.NDArray[np.float64]


class FlowingLog:
    """Records come evenly for each slice, at rates that all change by the same factor at certain times.

    Args:
        rates: records per second of each slice.
        phases: from how many seconds after the beginning on which factor holds; before the first nothing comes.
    """

    def __init__(self, rates: Floats, phases: Sequence[tuple[float, float]] = ((0.0, 1.0),)) -> None:
        self.rates, self.slices = rates, len(rates)
        self._times = [START + seconds for seconds, _ in phases]
        self._factors = [factor for _, factor in phases]
        lengths = np.diff(self._times)
        self._sums = [0.0, *np.cumsum(lengths * self._factors[:-1]).tolist()]

    def factor(self, now: float) -> float:
        """By how much more comes than at first."""
        return self._factors[max(bisect_right(self._times, now) - 1, 0)]

    def end(self, slice_: int, now: float) -> int:
        """Up to where a slice has something to be read."""
        phase = bisect_right(self._times, now) - 1
        if phase < 0:
            return 0
        return int(self.rates[slice_] * (self._sums[phase] + (now - self._times[phase]) * self._factors[phase]))

    def new_records(self, part: SlicePart) -> tuple[()]:  # noqa: ARG002
        """Single records are not known."""
        return ()


def publishers(count: int, slices: int, exponent: float, each: float, seed: int) -> Floats:
    """The rates of slices to which publishers are assigned by the hash of their names.

    What publishers send follows a Zipf law of this exponent, in an order drawn from the seed, and is ``each`` records
    per second on average.
    """
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    weights *= count * each / weights.sum()
    np.random.default_rng(seed).shuffle(weights)
    assigned = np.fromiter((slice_by_hash(f"publisher {number}", slices) for number in range(count)), np.int64, count)
    return np.asarray(np.bincount(assigned, weights, minlength=slices), np.float64)
