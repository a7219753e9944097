"""The rows of a run over time."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from tocsin.experiment.table import Row

Placement = Annotated[str, Meta(description="initial placement: RND, RR, NR or LL")]
Scheme = Annotated[str, Meta(description="what balances, by its name in the report")]
Seed = Annotated[int, Meta(description="of all that is random in the run")]
Seconds = Annotated[float, Meta(description="since the run began; in the paper's time, if it was compressed")]


class LoadRow(Row, frozen=True):
    """A broker at one moment of a run."""

    TABLE: ClassVar = "loads"

    placement: Placement
    scheme: Scheme
    seconds: Seconds
    broker: Annotated[str, Meta(description="the broker's name")]
    subscribers: Annotated[int, Meta(description="how many subscribers it serves")]
    incoming: Annotated[float, Meta(description="I, bytes per second")]
    outgoing: Annotated[float, Meta(description="O, bytes per second")]
    seed: Seed = 1

    @property
    def load(self) -> float:
        """F."""
        return self.incoming + self.outgoing


class Moment(Row, frozen=True):
    """All brokers together at one moment of a run."""

    placement: Placement
    scheme: Scheme
    seconds: Seconds
    highest: Annotated[float, Meta(description="highest load of a broker, bytes per second")]
    mean: Annotated[float, Meta(description="μ, mean load of the brokers, bytes per second")]
    cov: Annotated[float, Meta(description="σ ÷ μ of the brokers' loads")]
    moved: Annotated[int, Meta(description="how many moves of subscribers were made so far")]
    seed: Seed = 1


def moment(at: list[LoadRow], moved: int) -> Moment:
    """The moment that the loads of all brokers at the same time make."""
    loads = [one.load for one in at]
    mean = sum(loads) / len(loads)
    spread = (sum((load - mean) ** 2 for load in loads) / len(loads)) ** 0.5
    first, cov = at[0], spread / mean if mean else 0.0
    return Moment(first.placement, first.scheme, first.seconds, max(loads), mean, cov, moved, first.seed)
