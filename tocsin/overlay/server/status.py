"""How a broker of the overlay is doing, in figures."""

from __future__ import annotations

from typing import Literal

import msgspec

from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.load import Metrics
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.links import LinkedBroker, OverlayLinks

Role = Literal["head", "edge"]


class OverlayHealth(msgspec.Struct, frozen=True):
    """``degraded`` while there is no link to the head it should have one to, while a head's disk refuses, while a
    neighbour asks for what cannot be read, or after subscribers whom an edge has sent to another one did not arrive."""

    status: Literal["ok", "degraded"]
    broker: str
    role: Role
    problems: list[str] = []


class OverlayFigures(msgspec.Struct, frozen=True):
    """A broker as of now.

    ``state`` is whether it, or a head's cluster, is available for balancing; ``metrics`` are its own, or the averages
    of a cluster, None before anything was measured. ``clients`` are an edge's subscribers, or connections to a head.
    ``oldest`` and ``last`` are the offsets of a head's replay log. ``links`` are the brokers next to it. ``session`` is
    what an edge that is BUSY does: asking, sampling, migrating or accepting.
    """

    broker: str
    role: Role
    cluster: str
    url: str
    state: str
    metrics: Metrics | None
    clients: int
    links: list[LinkedBroker]
    problems: list[str] = []
    oldest: int | None = None
    last: int | None = None
    session: str = ""


def figures(driver: OverlayDriver, links: OverlayLinks, cluster: str, url: str, problems: list[str]) -> OverlayFigures:
    """All figures."""
    core, known = driver.core, list(links.known.values())
    if isinstance(core, Head):
        state, metrics, log = core.federation.state(), core.federation.metrics(), core.log
        return OverlayFigures(
            core.name,
            "head",
            cluster,
            url,
            state.value,
            metrics,
            driver.clients,
            known,
            problems,
            log.oldest,
            log.last,
        )
    load, state = core.surroundings.load(), core.surroundings.state()
    metrics = load.metrics if load else None
    return OverlayFigures(
        core.name,
        "edge",
        cluster,
        url,
        state.value,
        metrics,
        len(core.subscriptions),
        known,
        problems,
        session=core.mediation.stage,
    )


def describe_failures(core: Head | Edge) -> list[str]:
    """Which neighbours are not understood, and where those did not arrive whom an edge has sent to another one, as
    sentences for an operator."""
    not_read = [
        f"{link} asks for {count:,} filters that {core.name} cannot read, so that everything is sent to it: are both "
        "of the same version?"
        for link, count in core.links.unreadable.items()
    ]
    return not_read + (_describe_arrivals(core) if isinstance(core, Edge) else [])


def _describe_arrivals(edge: Edge) -> list[str]:
    return [
        f"{each.missing} of the {each.sent} subscribers that were last sent to {each.acceptor} did not arrive: can "
        f"they reach it at {edge.surroundings.address(each.acceptor)}? If not, set its overlay.url"
        for each in edge.mediation.in_vain
    ]
