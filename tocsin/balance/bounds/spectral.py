"""How evenly the holders of BE subscriptions can be kept together: the tightest bound for the highest load, and slow.

Let x_j be the 0/1 vector of broker j's subscribers, Y the matrix of who holds what, n_jk = (Yᵀx_j)_k, and for BE
subscription k: N its holders, r the brokers that hold it, q = Σ_j n_jk². Let the highest load be T.

1. For every whole c, (n − c)(n − c − 1) ≥ 0; so whoever holds any (n ≥ 1) has 1 ≥ ((2c + 1)n − n²) ÷ c(c + 1), and
   summed over brokers r ≥ ((2c + 1)N − q) ÷ c(c + 1). These lines are the sides of the polygon through (Nc, N/c); and
   N²/m ≤ q ≤ N². So for any price d ≥ 0: λr + dq ≥ min over c of λN/c + dNc, c whole up to N, and at least N/m.
2. Let D = diag(d), and g any vector with one entry per subscriber. Everybody is on one broker, so
   Σ dq = Σ_j x_jᵀ(YDYᵀ + diag g)x_j − Σ g = Σ_j z_jᵀCz_j − Σ g, where u are the own loads, z_j = √u x_j and
   C = (YDYᵀ + diag g) ÷ √u√uᵀ. The z_j are orthogonal and |z_j|² = O_j, what broker j sends. By von Neumann's trace
   inequality Σ_j z_jᵀCz_j ≤ Σ_j O_j μ_j, the O_j in falling order, μ the largest eigenvalues of C.
3. Σ O_j = Σ u and O_j ≤ T × capacity, so Σ_j O_j μ_j is at most what filling the largest brokers first makes of it.

Hence Σ u + Σ_k min(λN/c + dNc) − Σ_j O_j(T) μ_j + Σ g ≤ Σ F ≤ T Σ capacity for every d and g: the least such T is a
bound. The left side is concave in (d, g), so that a few rounds of ascent tighten it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from tocsin.balance.bounds.lowest import lower_bound
from tocsin.balance.bounds.scope import capacities, changeable
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Floats, Workload

_DENSE = 1500  # subscribers up to which all eigenvalues are computed
_PRECISION = 1e-5  # of the eigenvalues of larger ones, by Lanczos iteration; they are rounded up by it
_STEP = 0.1
_MEMORY = (0.8, 0.95)  # of past gradients, and of their squares


def spectral_bound(problem: Problem, rounds: int = 20) -> float:
    """No assignment that keeps to the rules has a highest load (÷ capacity) below this; ``lower_bound`` is not above.

    Costs about as many eigenvalue problems as ``rounds``: a second on hundreds of subscribers, many on 10,000.
    """
    bound, part = lower_bound(problem), changeable(problem)
    if part.brokers < 2 or not part.own.any():
        return bound
    form = _Form(part)
    prices = form.best_multiple(form.first(), bound)
    ascent = _Ascent(prices)
    for turn in range(rounds + 1):
        values, vectors = form.eigen(prices)
        bound = max(bound, form.least(prices, values, bound))
        if turn < rounds:
            prices = ascent.next(prices, form.gradient(prices, vectors, bound))
    return bound


class _Prices(NamedTuple):
    """d, one for each BE subscription, and g, one for each subscriber."""

    pairs: Floats
    selves: Floats


class _Form:
    """The quadratic form of a workload: its matrix C for any prices, and the bound that follows."""

    def __init__(self, workload: Workload) -> None:
        shape = (workload.subscribers, workload.subscriptions)
        held = scipy.sparse.csr_array((np.ones(len(workload.idx)), workload.idx, workload.indptr), shape=shape)
        # Who is sent nothing changes nothing, nor does what nobody holds or sends nothing.
        rows = np.flatnonzero(workload.own > 0)
        columns = np.flatnonzero((held.sum(axis=0) > 0) & (workload.rates > 0))
        held = held[rows][:, columns]
        self.own, self.rates = workload.own[rows].astype(np.float64), workload.rates[columns].astype(np.float64)
        self.number = np.asarray(held.sum(axis=0), np.float64)
        self.capacity = np.sort(capacities(workload))[::-1][: len(rows)]
        self.total = float(capacities(workload).sum())
        self.form = scipy.sparse.diags_array(1 / np.sqrt(self.own)) @ held
        self.transposed = self.form.T.tocsr()
        self.held = held

    def first(self) -> _Prices:
        """With d = λ/N the largest eigenvalue is 1 and its vector √u. Half of each subscriber's self is taken out: it
        makes the same sum in every assignment, and would let light subscribers of rare interests stand for all."""
        pairs = self.rates / self.number
        return _Prices(pairs, -0.5 * np.asarray(self.held @ pairs))

    def best_multiple(self, prices: _Prices, highest: float) -> _Prices:
        """The best multiple of the prices."""
        values, _ = self.eigen(prices)
        pairs, selves = prices
        multiples = [_Prices(pairs * x, selves * x) for x in np.geomspace(0.05, 20, 61)]
        worth = [self.sum(m, values * (m.pairs[0] / pairs[0]), highest) for m in multiples]
        return multiples[int(np.argmax(worth))]

    def eigen(self, prices: _Prices) -> tuple[Floats, Floats]:
        """The largest eigenvalues, falling, as many as there are brokers, and their vectors."""
        size, number = len(self.own), len(self.capacity)
        diagonal = prices.selves / self.own
        if size <= max(_DENSE, 2 * number):
            matrix = (self.form @ scipy.sparse.diags_array(prices.pairs) @ self.transposed).toarray()
            matrix[np.arange(size), np.arange(size)] += diagonal
            values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[size - number, size - 1])
            return values[::-1], vectors[:, ::-1]

        def product(vector: Floats) -> Floats:
            return np.asarray(self.form @ (prices.pairs * (self.transposed @ vector)) + diagonal * vector)

        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).random(size)
        values, vectors = eigsh(operator, k=number, which="LA", v0=start, tol=_PRECISION, ncv=min(4 * number, size))
        return values[::-1] + _PRECISION * np.abs(values[::-1]), vectors[:, ::-1]

    def sizes(self, prices: _Prices) -> Floats:
        """The c of each BE subscription where λN/c + dNc is least."""
        whole = np.ceil((np.sqrt(1 + 4 * self.rates / prices.pairs) - 1) / 2)
        return np.asarray(np.maximum(np.clip(whole, 1, self.number), self.number / len(self.capacity)))

    def outgoing(self, highest: float) -> Floats:
        """O_j(T): what each broker sends when the largest are filled first."""
        room = highest * self.capacity
        before = np.cumsum(room) - room
        return np.asarray(np.clip(self.own.sum() - before, 0, room))

    def sum(self, prices: _Prices, values: Floats, highest: float) -> float:
        """What all loads add up to at least, if none is above ``highest``."""
        size = self.sizes(prices)
        coming = float((self.number * (self.rates / size + prices.pairs * size)).sum())
        return float(self.own.sum() + coming - self.outgoing(highest) @ values + prices.selves.sum())

    def least(self, prices: _Prices, values: Floats, above: float) -> float:
        """The least T that the sum of all loads allows, or ``above``."""
        low, high = above, 2 * above
        if self.sum(prices, values, low) <= low * self.total:
            return above
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            fits = self.sum(prices, values, middle) <= middle * self.total
            low, high = (low, middle) if fits else (middle, high)
        return low

    def gradient(self, prices: _Prices, vectors: Floats, highest: float) -> _Prices:
        """Where the sum rises."""
        outgoing = self.outgoing(highest)
        pairs = self.number * self.sizes(prices) - np.asarray((self.transposed @ vectors) ** 2) @ outgoing
        return _Prices(pairs, 1 - (vectors**2 @ outgoing) / self.own)


class _Ascent:
    """Steps along gradients, each price with a pace of its own (Adam), ever shorter."""

    def __init__(self, first: _Prices) -> None:
        self._scale = np.concatenate([first.pairs, np.full(len(first.selves), np.abs(first.selves).mean())])
        self._mean, self._square = np.zeros_like(self._scale), np.zeros_like(self._scale)
        self._turn = 0

    def next(self, prices: _Prices, gradient: _Prices) -> _Prices:
        """The prices a step further; d stays above 0."""
        self._turn += 1
        slope = np.concatenate(gradient) * self._scale
        short, long = _MEMORY
        self._mean = short * self._mean + (1 - short) * slope
        self._square = long * self._square + (1 - long) * slope**2
        pace = (self._mean / (1 - short**self._turn)) / np.sqrt(self._square / (1 - long**self._turn) + 1e-30)
        moved = np.concatenate(prices) + _STEP / np.sqrt(1 + self._turn / 10) * self._scale * pace
        count = len(prices.pairs)
        return _Prices(np.maximum(moved[:count], 1e-6 * self._scale[:count]), moved[count:])
