"""The experiment ``simulation``: the paper's second evaluation on the shipped cores, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from tocsin.balance.control.thresholds import Thresholds
from tocsin.experiment.schemes import GSH, LDM, LDM_GSH, MIGRATE, NONE, OURS, SDM, Scheme, papers_above, scheme
from tocsin.experiment.seeds import split, with_seeds
from tocsin.experiment.series.course import by_scheme, by_seed, courses
from tocsin.experiment.series.rows import LoadRow, Moment
from tocsin.experiment.series.simulator import rows, simulate_run
from tocsin.experiment.simulation import claims
from tocsin.experiment.simulation.sections import sections
from tocsin.experiment.study import ReportSection, StudyData, Tell
from tocsin.experiment.table import Row
from tocsin.experiment.verdict import ClaimVerdict
from tocsin.simulate.scenario import Scenario
from tocsin.simulate.scenarios.paper import Paper, paper

_PAPER: Final = Thresholds.paper()
ALPHAS: Final = (0.05, 0.1, _PAPER.alpha, 0.2, 0.3)
BETAS: Final = (0.0, _PAPER.beta, 900e6, 1_400e6)
"""Bytes per second, for the paper's 10,000 subscribers; for fewer it is as much less."""

_SMALL: Final = Paper(subscribers=150, backend_subscriptions=5, seconds=300.0, subscribing=80.0)


@dataclass(frozen=True)
class Thousands:
    """Ten brokers and ten thousand subscribers for half an hour. One's own policies are run beside ours.

    With fewer subscribers there are as many fewer BE subscriptions and as small a β, so that as many share each. All
    is run with ``seeds`` seeds, ``seed`` being the first, and once if it is to be quick.
    """

    seed: int = 1
    seeds: int = 5
    quick: bool = False
    policies: Sequence[str] = ()
    subscribers: int = 10_000

    name = "simulation"
    title = "The simulation"
    about = (
        "Section 6.2 of the paper: ten brokers, 10,000 subscribers, ten channels that run every 5 to 60 seconds with "
        "100 BE subscriptions each, 10 to 30 subscriptions for everybody, so some 200,000 in all. All log in at the "
        "beginning, on the nearest broker, and subscribe in the first eight minutes of thirty. Every minute a quarter "
        "of the BE subscriptions is chosen to bring more within the next three minutes, and less again four to six "
        "minutes later.\n\n"
        "Brokers, coordinator and subscribers are the shipped cores in virtual time; the data cluster is a model. "
        "Every login, subscription, report and move is a message; what executions deliver is counted. The paper does "
        "not say how large its rates are nor where people live; these were chosen so that the mean load passes its β "
        "of 300 MB/s and one broker is the nearest for more than 2,000."
    )
    tables = (LoadRow, Moment)

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the numbers depend on; seeds and policies of one's own are cells, so that a run can grow by them."""
        size = self._size
        return {
            "seed": self.seed,
            "quick": self.quick,
            "brokers": size.brokers,
            "subscribers": size.subscribers,
            "BE subscriptions": size.channels * size.backend_subscriptions,
            "minutes": size.seconds / 60,
            "α": list(self._choose_values(ALPHAS)),
            "β": [beta * self._scale for beta in self._choose_values(BETAS)],
        }

    @property
    def smaller(self) -> str:
        """What a run has less of than the paper's."""
        size, full = self._size, Paper()
        if size.subscribers >= full.subscribers:
            return ""
        shorter = f" and {size.seconds / 60:.0f} of {full.seconds / 60:.0f} minutes" if self.quick else ""
        return f"{size.subscribers:,} of {full.subscribers:,} subscribers{shorter}"

    def cells(self) -> list[str]:
        """The schemes, then the sweeps of α and β; all of them again with every further seed."""
        return with_seeds(self._schemes, self.seed, 1 if self.quick else self.seeds)

    def measure(self, cell: str, tell: Tell) -> Iterator[Row]:
        """One run."""
        name, seed = split(cell, self.seed)
        chosen = self._schemes[name]
        tell("making the scenario", 0.0)
        yield from rows(simulate_run(_scenario(self._size, seed), chosen, seed, tell), chosen)

    def sections(self, data: StudyData) -> list[ReportSection]:
        """The report's parts."""
        return sections(by_scheme(courses(data)), self._alphas(), self._betas(), _PAPER.beta * self._scale)

    def verdicts(self, data: StudyData) -> list[ClaimVerdict]:
        """The claims."""
        return claims.verdicts(by_seed(courses(data)), self._alphas(), self._betas())

    @cached_property
    def _schemes(self) -> dict[str, Scheme]:
        least = _PAPER.beta * self._scale
        others = [SDM, GSH, LDM_GSH, OURS, MIGRATE, *map(scheme, self.policies)]
        swept = {alpha: LDM.at(_alpha(alpha), alpha=alpha, beta=least) for alpha in self._choose_values(ALPHAS)}
        usual = swept.pop(_PAPER.alpha)
        betas = [
            LDM.at(_beta(beta), beta=beta * self._scale) for beta in self._choose_values(BETAS) if beta != _PAPER.beta
        ]
        chosen = [NONE, usual, *(papers_above(one, least) for one in others), *swept.values(), *betas]
        return {one.title: one for one in chosen}

    def _choose_values(self, values: Sequence[float]) -> list[float]:
        """Of the values of a sweep the smallest and the usual one, if it is to be quick."""
        return [value for value in values if not self.quick or value in (values[0], _PAPER.alpha, _PAPER.beta)]

    def _alphas(self) -> list[str]:
        return [_alpha(alpha) for alpha in self._choose_values(ALPHAS)]

    def _betas(self) -> list[str]:
        return [claims.LDM if beta == _PAPER.beta else _beta(beta) for beta in self._choose_values(BETAS)]

    @property
    def _size(self) -> Paper:
        if self.quick:
            return _SMALL
        return Paper(subscribers=self.subscribers, backend_subscriptions=max(self.subscribers // 100, 5))

    @property
    def _scale(self) -> float:
        """Loads grow with the subscribers."""
        return self._size.subscribers / Paper().subscribers


@lru_cache(maxsize=1)
def _scenario(size: Paper, seed: int) -> Scenario:
    """Made once for all cells of a seed, which follow each other."""
    return paper(size, seed)


def _alpha(alpha: float) -> str:
    return f"LDM α={alpha:g}"


def _beta(beta: float) -> str:
    return f"LDM β={beta / 1e6:g}"
