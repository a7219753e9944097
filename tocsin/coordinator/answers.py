"""What the coordinator answers to people and programs."""

from __future__ import annotations

import msgspec


class Registered(msgspec.Struct, frozen=True):
    """Somebody is known, and this token says so."""

    name: str
    token: str


class Located(msgspec.Struct, frozen=True):
    """The broker that is ready for a subscriber."""

    broker: str
    url: str


class Done(msgspec.Struct, frozen=True):
    """It is done, and would outlive a crash."""


class ProposedChange(msgspec.Struct, frozen=True):
    """A broker's load before and after a plan, and how many leave it and come to it."""

    broker: str
    before: float
    after: float
    left: int
    came: int


class Proposal(msgspec.Struct, frozen=True):
    """A plan for people: its stage and reason, what it does in sentences, and a line per broker.

    ``refused`` says which other plans were considered, and why they were not let through.
    """

    stage: str
    reason: str
    moves: int = 0
    sentences: list[str] = []
    brokers: list[ProposedChange] = []
    refused: list[str] = []


class BrokerSummary(msgspec.Struct, frozen=True):
    """A broker: ``load`` as the balancer counts it, ``incoming`` and ``outgoing`` as the broker measured them.

    ``planned`` is the moving average, over the same time as these, of what the balancer counted; ``deviation`` is by
    which part of the larger of both the measured load is above the planned one, or, negative, below it.
    """

    name: str
    url: str
    state: str
    subscribers: int
    online: int
    load: float
    incoming: float
    outgoing: float
    planned: float = 0.0
    deviation: float = 0.0


class CoordinatorHealth(msgspec.Struct, frozen=True):
    """How the coordinator is. ``problems`` are sentences for an operator, empty when all is well."""

    status: str
    problems: list[str] = []


class NetworkStatus(msgspec.Struct, frozen=True):
    """How things stand.

    ``cov``, ``mean`` and ``highest`` are of the brokers that take subscribers. ``moving`` are under way, ``waiting``
    are moves of a plan yet to begin, ``homeless`` are subscribers without a broker that lives, ``decision`` is what was
    last decided about the loads, and why; ``plans`` how many of each stage were followed since the start. ``problems``
    are sentences for an operator.
    """

    balancing: bool
    brokers: list[BrokerSummary]
    cov: float
    mean: float
    highest: float
    subscribers: int
    moving: int
    waiting: int
    homeless: int
    moved: int
    decision: str
    plans: dict[str, int] = {}
    problems: list[str] = []


Answer = Registered | Located | Done | Proposal | NetworkStatus
