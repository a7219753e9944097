"""A head or an edge with all its parts: made from the settings, started and stopped as one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from tocsin.model.histories import new_incarnation
from tocsin.overlay.edge import Edge
from tocsin.overlay.events import LogStored
from tocsin.overlay.head import Head
from tocsin.overlay.server.access import OverlayAccess
from tocsin.overlay.server.channel import ChannelSource
from tocsin.overlay.server.clients import OverlayClients
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.gauge import Gauge
from tocsin.overlay.server.links import HeadLink, LinkedBroker, OverlayLinks
from tocsin.overlay.server.status import OverlayFigures, OverlayHealth, Role, describe_failures, figures
from tocsin.overlay.server.store import ReplayStore
from tocsin.overlay.server.writer import LogWriter
from tocsin.settings.overlay import OverlaySettings
from tocsin.tasks import until_one_ends


class OverlayServer:
    """Everything but the listening socket. It is a head if there is a ``store``, else an edge of ``cluster``.

    ``url`` is where others reach it, ``ca`` the file of a private authority that is trusted when it dials. ``source``
    is a channel whose rows a head publishes.
    """

    def __init__(
        self,
        section: OverlaySettings,
        url: str,
        *,
        store: ReplayStore | None = None,
        cluster: str = "",
        ca: str = "",
        source: ChannelSource | None = None,
    ) -> None:
        self._source = source
        self._section, self.url, self.cluster = section, url, cluster or section.name
        self._writer = LogWriter(store, section.unstored, section.unstored_bytes, self._stored) if store else None
        core = _head(section, store) if store else _edge(section, cluster, url)
        self.driver = OverlayDriver(core, self._writer)
        self.access = OverlayAccess(section)
        self.links = OverlayLinks(self.driver, self.access, section.link_bytes)
        self.clients = OverlayClients(self.driver, self.access, section, self._writer)
        self.role: Role = "head" if store else "edge"
        self._link = self._make_head_link(ca, cluster) if section.head else None

    async def run(self) -> None:
        """Drives the core until it is cancelled; what waits to be stored then still is, if that can be done."""
        writing = asyncio.create_task(self._writer.run()) if self._writer else None
        try:
            await until_one_ends(*self._parts(), self._failed())
        finally:
            if self._writer and writing:
                self._writer.end()
                await writing
            self.driver.stop()

    def problems(self) -> list[str]:
        """Sentences for an operator, none when all is well."""
        problems = []
        if self._writer and self._writer.refused:
            problems.append("the disk refuses what is to be stored; it is tried again, and the log says why")
        if self._section.head and not (self.links.dialled and self.links.dialled in self.links.known):
            problems.append(f"there is no link to the head at {self._section.head}; it is tried again")
        if self.links.circle:
            problems.append(self.links.circle)
        problems += describe_failures(self.driver.core)
        return problems + (self._source.problems if self._source else [])

    def health(self) -> OverlayHealth:
        """Whether all is well."""
        problems = self.problems()
        return OverlayHealth("degraded" if problems else "ok", self.driver.core.name, self.role, problems)

    def status(self) -> OverlayFigures:
        """All figures."""
        return figures(self.driver, self.links, self.cluster, self.url, self.problems())

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        parts = [self._link.keep()] if self._link else []
        if self.role == "edge":
            section, edge = self._section, cast(Edge, self.driver.core)
            gauge = Gauge(self.driver, edge, section.bandwidth, section.memory_bytes, section.rate_seconds)
            parts.append(gauge.run())
        if self._source and self._writer:
            parts.append(self._source.run(self.driver, self._writer))
        return parts

    async def _failed(self) -> None:
        await self.driver.failed

    def _stored(self, offset: int) -> None:
        self.driver.tell(LogStored(offset))
        if self._source:
            self._source.stored()

    def _make_head_link(self, ca: str, expected: str) -> HeadLink:
        section = self._section
        own = LinkedBroker(section.name, self.role, self.url)
        return HeadLink(self.links, own, section.head, section.token, section.link_bytes, ca, expected)


def _head(section: OverlaySettings, store: ReplayStore) -> Head:
    incarnation = new_incarnation()
    return Head(section.name, incarnation, store.begin(incarnation), section.limits, section.tuning)


def _edge(section: OverlaySettings, cluster: str, url: str) -> Edge:
    return Edge(section.name, cluster, new_incarnation(), section.limits, section.tuning, url)
