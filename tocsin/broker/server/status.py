"""How a broker is doing, in figures."""

from __future__ import annotations

from typing import Literal

import msgspec

from tocsin.broker.core import BrokerCore

MOST_NAMES = 100


class BrokerHealth(msgspec.Struct, frozen=True, omit_defaults=True):
    """``starting`` until the coordinator was reached, ``degraded`` while a link is down: delivery goes on with what is
    there, or while the data cluster does not know channels of which subscriptions are held (``missing``): create them
    again. ``warning`` says what will go wrong unless somebody does something, ``setbacks`` what the data cluster has
    lost, as when an older copy of its data was restored, since this broker was started."""

    status: Literal["ok", "degraded", "starting"]
    coordinator: bool
    data: bool
    warning: str | None = None
    missing: list[str] = []
    setbacks: list[str] = []


class CacheStatus(msgspec.Struct, frozen=True):
    """The cache: what it holds, and how often it could answer."""

    bytes: int
    hits: int
    misses: int
    evicted: int


class BrokerFigures(msgspec.Struct, frozen=True):
    """A broker as of now.

    ``connections`` are open, ``online`` of the ``subscribers`` are logged in. ``subscriptions`` are those of
    subscribers, ``lines`` what is held for them in the data cluster. ``incoming`` and ``outgoing`` are bytes per
    second. ``slow`` names subscribers who do not keep up, the first hundred of ``slow_count``. ``accepted`` and
    ``closed`` count since the start, the latter by close code; 1006 are those lost without one.
    """

    broker: str
    url: str
    health: BrokerHealth
    connections: int
    subscribers: int
    online: int
    subscriptions: int
    lines: int
    incoming: float
    outgoing: float
    cache: CacheStatus
    slow_count: int
    slow: list[str]
    accepted: int
    closed: dict[str, int]


def cache_status(core: BrokerCore) -> CacheStatus:
    """The cache's figures."""
    figures = core.cache_figures
    return CacheStatus(core.cached_bytes, figures.hits, figures.misses, figures.evicted)


def slow(core: BrokerCore) -> list[str]:
    """Who does not keep up."""
    return [stay.subscriber for stay in core.holdings.stays.values() if stay.session and stay.session.slow]
