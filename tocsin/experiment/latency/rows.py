"""How long notifications took in one simulated run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tocsin.experiment.series.rows import Scheme
from tocsin.experiment.table import Row


class Delay(Row, frozen=True):
    """One run: how long notifications waited in brokers' queues and on the way, from the middle of the run on."""

    scheme: Scheme
    utilisation: Annotated[float, Meta(description="the mean broker's load over its capacity, as the run was set up")]
    capacity: Annotated[float, Meta(description="what each broker can carry, bytes per second")]
    hottest: Annotated[float, Meta(description="the highest load over the capacity, as a mean over the second half")]
    p50: Annotated[float, Meta(description="median delay, seconds")]
    p99: Annotated[float, Meta(description="99th percentile of the delay, seconds")]
    moved: Annotated[int, Meta(description="how many moves of subscribers were made")]
