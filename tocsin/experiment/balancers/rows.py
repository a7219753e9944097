"""What is kept of a run of two balancers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from tocsin.experiment.table import Row

SetUp = Annotated[str, Meta(description="the set-up: which brokers there are")]
Balancer = Annotated[str, Meta(description="what balances it")]
Seconds = Annotated[float, Meta(description="from the beginning; of the row before until then")]


class BrokerRow(Row, frozen=True):
    """A broker every ten seconds: what it has to do, counted by who is where and what is published."""

    TABLE: ClassVar[str] = "brokers"

    setup: SetUp
    balancer: Balancer
    seconds: Seconds
    broker: str
    subscribers: Annotated[int, Meta(description="how many are there")]
    received: Annotated[int, Meta(description="publications that come to it")]
    delivered: Annotated[int, Meta(description="publications that it sends to subscribers")]
    traffic: Annotated[float, Meta(description="bytes per second in and out, over its bandwidth")]
    matching: Annotated[float, Meta(description="seconds that matching takes in a second")]


class BalancingRow(Row, frozen=True):
    """What a balancer did since the row before."""

    TABLE: ClassVar[str] = "balancing"

    setup: SetUp
    balancer: Balancer
    seconds: Seconds
    moves: Annotated[int, Meta(description="subscribers that are on another broker than before")]
    messages: Annotated[float, Meta(description="messages of any kind between all programs")]
    own: Annotated[float, Meta(description="of these, the balancer's")]


class BoundRow(Row, frozen=True):
    """A half of a run: until more is published, or from then on. Loads are averages over a span at its end, and the
    highest traffic of a broker cannot be below the bound there, whoever is where."""

    TABLE: ClassVar[str] = "bounds"

    setup: SetUp
    begins: Annotated[float, Meta(description="seconds at which the half begins")]
    settles: Annotated[float, Meta(description="seconds at which the last subscriber joins, or more is published")]
    since: Annotated[float, Meta(description="seconds at which the span begins")]
    until: Annotated[float, Meta(description="seconds at which it ends, and the half")]
    signatures: Annotated[int, Meta(description="distinct sets of subscribers that a publication matches")]
    bound: Annotated[float, Meta(description="of the highest traffic over bandwidth")]
