"""When the controller acts, and which plans it lets through."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tocsin.errors import InvalidError


@dataclass(frozen=True)
class Thresholds:
    """The controller's settings. Times are seconds, rates bytes per second of a broker on average.

    There are two sets of them, :meth:`product` and :meth:`paper`, and no default is anywhere else: what is not given is
    the product's.

    Args:
        alpha: migrate when cov is above this. The paper's value.
        beta: migrate only when the mean load μ is above this, what a broker handles with ease. 0: always.
        gamma: shuffle when cov is above this. The paper's value.
        theta: shuffle only when μ is above this.
        shuffle_gain: shuffle only when the highest load ends by this part of it lower than with a migration, which
            moves far fewer. 0: also when a migration would do as well, as in the paper.
        max_over_mean: migrate also when the highest load is above so many times μ, since cov ≤ α alone allows
            1 + α·√(m − 1): 1.45 times with 10 brokers, 2.5 times with 100. None: never, as in the paper.
        chance: but not while it is below 1 + ``chance`` ÷ √n, with n subscribers a broker: the fewer make up a load,
            the more it changes by chance, and that passes by itself. 0: nothing is left to chance.
        target: of what the highest load may be above μ, plans leave this part; nobody moves for less. None: they go as
            low as they find worth it.
        stale_after: a broker that has not reported for longer is neither left nor come to.
        max_stale: no plan at all when more than this part of the brokers has not reported.
        cool_down: no new plan to balance within this time after the last. What drains does not wait.
        settle: whoever was moved stays for this long, unless its broker drains, and so is not moved back.
        max_moves: move at most so many subscribers in a round. None: any number.
        min_gain: leave moves out that gain less (bytes per second; ``gains.py`` says of what). 0: leave none out.
        min_improvement: refuse a plan that lowers neither the highest load nor cov by this part of it.
    """

    alpha: float = 0.15
    beta: float = 0.0
    gamma: float = 0.5
    theta: float = 0.0
    shuffle_gain: float = 0.1
    max_over_mean: float | None = 1.02
    chance: float = 0.6
    target: float | None = 0.7
    stale_after: float = 30.0
    max_stale: float = 0.5
    cool_down: float = 60.0
    settle: float = 300.0
    max_moves: int | None = None
    min_gain: float = 0.0
    min_improvement: float = 0.02

    @classmethod
    def product(cls) -> Thresholds:
        """As Tocsin balances unless its settings say otherwise: a system of any size, and with few moves."""
        return cls()

    @classmethod
    def paper(cls) -> Thresholds:
        """As Algorithm 1 does: in every round in which cov and μ call for it, by any plan that helps at all.

        β is that of the paper's simulation. It names no θ; here it is β.
        """
        return cls(
            alpha=0.15,
            beta=300e6,
            gamma=0.5,
            theta=300e6,
            shuffle_gain=0.0,
            max_over_mean=None,
            chance=0.0,
            target=None,
            cool_down=0.0,
            settle=0.0,
            min_improvement=1e-6,
        )

    def limit(self, subscribers: float) -> float | None:
        """The highest load over μ that is left alone, with so many subscribers on a broker; None: any."""
        if self.max_over_mean is None:
            return None
        return max(self.max_over_mean, 1 + self.chance / math.sqrt(max(subscribers, 1.0)))

    def enough(self, subscribers: float) -> float | None:
        """The highest load over μ for which nobody need move; None: the lower the better."""
        limit = self.limit(subscribers)
        return None if limit is None or self.target is None else 1 + self.target * (limit - 1)

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma", "theta", "chance", "stale_after", "cool_down", "settle", "min_gain"):
            if not getattr(self, name) >= 0:
                raise InvalidError(f"{name} is {getattr(self, name)}; it must not be below 0")
        if not 0 < self.min_improvement < 1:
            raise InvalidError(f"min_improvement is {self.min_improvement}; it must be between 0 and 1, or plans go on")
        if not 0 <= self.max_stale <= 1:
            raise InvalidError(f"max_stale is {self.max_stale}; it must be a part of the brokers, from 0 to 1")
        if self.max_over_mean is not None and not self.max_over_mean > 1:
            raise InvalidError(f"max_over_mean is {self.max_over_mean}; the highest load is never below the mean")
        if self.target is not None and not 0 < self.target <= 1:
            raise InvalidError(f"target is {self.target}; it must be a part of what is allowed, from above 0 to 1")
        if not 0 <= self.shuffle_gain < 1:
            raise InvalidError(f"shuffle_gain is {self.shuffle_gain}; it must be a part of the load, from 0 to below 1")
        if self.max_moves is not None and self.max_moves < 1:
            raise InvalidError(f"max_moves is {self.max_moves}; with no moves at all, do not run the controller")
