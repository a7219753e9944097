"""What simulated nodes did with their slices."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tocsin.experiment.table import Row


class Evenness(Row, frozen=True):
    """One run: how even the nodes' loads were before slices moved and at the end, and what the moves cost."""

    TABLE = "evenness"

    nodes: Annotated[int, Meta(description="how many nodes shared the slices")]
    slices: Annotated[int, Meta(description="how many slices there were")]
    publishers: Annotated[int, Meta(description="how many publishers sent records")]
    planner: Annotated[str, Meta(description="what said which slices move")]
    cov_before: Annotated[float, Meta(description="cov of what comes for the nodes, before slices moved")]
    highest_before: Annotated[float, Meta(description="the same: the highest over the mean")]
    cov_after: Annotated[float, Meta(description="cov at the end, as a mean over the last ten seconds")]
    highest_after: Annotated[float, Meta(description="the same: the highest over the mean")]
    bound: Annotated[float, Meta(description="the heaviest slice over the mean load of a node, or 1: not below that")]
    moves: Annotated[int, Meta(description="how many moves of slices were made")]
    pause_p50: Annotated[float, Meta(description="from the giver's last read to the taker's first, median, seconds")]
    pause_p99: Annotated[float, Meta(description="the same: 99th percentile")]
    pause_max: Annotated[float, Meta(description="the same: the longest")]
    batch: Annotated[float, Meta(description="from one read of a slice to the next without a move, median, seconds")]
    processed: Annotated[int, Meta(description="records that were committed")]
    missing: Annotated[int, Meta(description="records older than ten seconds that were not")]


class Takeover(Row, frozen=True):
    """A node that was killed: when its slices were read again."""

    TABLE = "takeovers"

    nodes: Annotated[int, Meta(description="how many nodes shared the slices")]
    slices: Annotated[int, Meta(description="how many of them the dead one had")]
    first: Annotated[float, Meta(description="seconds from its last read of a slice to another's first: the shortest")]
    last: Annotated[float, Meta(description="the same: the longest")]


class Growth(Row, frozen=True):
    """One second of a run in which the load doubles and halves, and nodes come and go."""

    TABLE = "growth"

    second: Annotated[float, Meta(description="since the beginning")]
    factor: Annotated[float, Meta(description="what comes, over what came at first")]
    nodes: Annotated[int, Meta(description="how many nodes there were")]
    owners: Annotated[int, Meta(description="how many of them had slices")]
    busiest: Annotated[float, Meta(description="what comes for the busiest node, over what it can process")]
    behind: Annotated[float, Meta(description="what waits in the log, in seconds of what comes")]
    moves: Annotated[int, Meta(description="moves of slices so far")]


class Throughput(Row, frozen=True):
    """Real processes on one machine: how many records a second so many workers took."""

    TABLE = "throughput"

    workers: Annotated[int, Meta(description="how many shared the slices; 0: the data cluster by itself")]
    cores: Annotated[int, Meta(description="of the machine, which the workers, the data cluster and publishers share")]
    rate: Annotated[float, Meta(description="records of 500 bytes a second, from HTTP into the dataset")]
    ratio: Annotated[float, Meta(description="the same over what the data cluster takes by itself")]
