"""What is kept of a run of the PADRES evaluation."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from tocsin.experiment.table import Row

Run = Annotated[str, Meta(description="the run, by what is different in it")]
Seconds = Annotated[float, Meta(description="from the beginning of the run")]


class EdgeRow(Row, frozen=True):
    """An edge at a moment, every few seconds: its load as it says it itself, and what it did since the row before."""

    TABLE: ClassVar[str] = "edges"

    run: Run
    seconds: Seconds
    broker: str
    cluster: Annotated[str, Meta(description="its head")]
    input: Annotated[float, Meta(description="input utilisation ratio")]
    output: Annotated[float, Meta(description="output utilisation ratio")]
    delay: Annotated[float, Meta(description="matching delay, seconds")]
    cpu: Annotated[float, Meta(description="part of the processor in use")]
    memory: Annotated[float, Meta(description="part of the memory in use")]
    state: Annotated[str, Meta(description="OK, BUSY, N/A or STABILIZING")]
    subscribers: Annotated[int, Meta(description="how many it serves")]
    waiting: Annotated[int, Meta(description="publications that wait to be matched")]
    deliveries: Annotated[int, Meta(description="publications sent to subscribers since the row before")]
    delivery: Annotated[
        float, Meta(description="how long these took from the publisher to the subscriber, mean seconds")
    ]


class MessageRow(Row, frozen=True):
    """All messages between all programs since the row before, and what the balancer did."""

    TABLE: ClassVar[str] = "messages"

    run: Run
    seconds: Seconds
    messages: Annotated[int, Meta(description="messages of any kind, on all links and connections")]
    balancing: Annotated[float, Meta(description="of these, the balancer's: loads, sessions, and migrations")]
    sessions: Annotated[int, Meta(description="sessions in which subscribers were sent away")]
    moved: Annotated[int, Meta(description="subscribers that were sent away")]
    allied: Annotated[str, Meta(description="pairs of clusters that are in a session, as B10+B20")]


class EstimateRow(Row, frozen=True):
    """One broker of a session: its input ratio as was estimated, and as it was afterwards."""

    TABLE: ClassVar[str] = "estimates"

    run: Run
    seconds: Seconds
    broker: str
    role: Annotated[str, Meta(description="offloading or load-accepting broker")]
    offloader: Annotated[str, Meta(description="the offloading broker of the session")]
    algorithm: Annotated[str, Meta(description="input, match or output")]
    subscribers: Annotated[int, Meta(description="how many were sent away")]
    joining: Annotated[bool, Meta(description="whether subscribers still joined meanwhile")]
    estimated: Annotated[float, Meta(description="input ratio, estimated")]
    actual: Annotated[float, Meta(description="input ratio, counted after the migration")]
