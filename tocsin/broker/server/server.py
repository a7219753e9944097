"""A broker with all its parts: made from the settings, started and stopped as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import httpx
import msgspec

from tocsin.broker import events
from tocsin.broker.cache import EvictionPolicy, LeastRecentlyUsed, LeastSubscribed, TimeToLive
from tocsin.broker.core import BrokerCore
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.server.access import BrokerAccess, Expiry
from tocsin.broker.server.connection import SubscriberConnection
from tocsin.broker.server.connections import Connections
from tocsin.broker.server.doorway import SubscriberDoorways
from tocsin.broker.server.driver import BrokerDriver
from tocsin.broker.server.entrance import Entrance
from tocsin.broker.server.links import CoordinatorLink, DataLink, Link
from tocsin.broker.server.publications import PublicationSender
from tocsin.broker.server.status import MOST_NAMES, BrokerFigures, BrokerHealth, cache_status, slow
from tocsin.http.demo import DEMO_TOKEN
from tocsin.http.listening import is_loopback
from tocsin.http.origins import Origins
from tocsin.model import messages
from tocsin.model.trust import Trust
from tocsin.settings import BrokerSettings
from tocsin.trust import trust


class BrokerServer:
    """Everything but the listening socket.

    ``url`` is where subscribers reach it, ``ca`` the file of a private authority that is trusted when it dials.
    """

    def __init__(self, section: BrokerSettings, url: str, ca: str = "") -> None:
        limits = limits_of(section)
        demo_token = _demo_token(section)
        self.name, self.url, self.access = section.name, url, BrokerAccess(demo_token)
        self.origins = Origins("broker", section.origins, demo_token is not None)
        location = (section.location[0], section.location[1]) if section.location else None
        self._core = BrokerCore(
            section.name,
            url,
            self.access.subscriber,
            limits=limits,
            policy=_policy(section),
            capacity=section.capacity,
            location=location,
        )
        self._driver = BrokerDriver(self._core)
        self.connections = Connections(
            Entrance(self.origins, section.connections),
            self._driver,
            message_bytes=limits.message_bytes,
            waiting_bytes=limits.waiting_bytes,
            burst=limits.message_burst,
        )
        self.doorways = SubscriberDoorways(
            lambda: SubscriberConnection(self.connections), section.connections, limits.login_seconds
        )
        data_urls = [url.strip() for url in section.data.split(",") if url.strip()]
        self._client = _client(section, data_urls, ca)
        self._publications = PublicationSender(self._client, self._driver.feed)
        self._coordinator = CoordinatorLink(self._driver, section.coordinator, section.token, ca)
        broker = messages.BrokerAddress(section.name, url)
        self._data = DataLink(self._driver, self._client, data_urls, broker, section.data_token, ca)
        self._expiry = Expiry(section.name, section.token)
        self._ping_seconds = section.ping_seconds
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Dials, and looks after connections from now on."""
        links: dict[events.LinkName, Link] = {"coordinator": self._coordinator, "data": self._data}
        self._driver.start(self.connections.get, links, self._publications.publish, self._learn)
        parts = (
            self._coordinator.keep(),
            self._data.keep(),
            self.connections.sweep(self._ping_seconds),
            self.connections.end_late_ones(),
            self._expiry.watch(),
        )
        self._tasks = [asyncio.create_task(part) for part in parts]

    async def stop(self) -> None:
        """Lets go of everything: the links first, so that nobody is sent here any more, then the subscribers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.connections.stop()
        await self._publications.stop()
        self._driver.stop()
        await self._client.aclose()

    def health(self) -> BrokerHealth:
        """Whether the links are up."""
        linked, warning, holdings = self._driver.linked, self._expiry.warning(), self._core.holdings
        missing, setbacks = holdings.missing, list(holdings.setbacks.values())
        status: Literal["ok", "degraded", "starting"] = "ok" if all(linked.values()) and not missing else "degraded"
        if not self.connections.entrance.open:
            status = "starting"
        return BrokerHealth(status, linked["coordinator"], linked["data"], warning, missing, setbacks)

    def status(self) -> BrokerFigures:
        """All figures."""
        holdings, connections, names = self._core.holdings, self.connections, slow(self._core)
        incoming, outgoing = self._core.load(asyncio.get_running_loop().time())
        return BrokerFigures(
            broker=self.name,
            url=self.url,
            health=self.health(),
            connections=len(connections),
            subscribers=len(holdings.stays),
            online=sum(stay.session is not None for stay in holdings.stays.values()),
            subscriptions=sum(len(stay.subscriptions) for stay in holdings.stays.values()),
            lines=len(holdings.backends),
            incoming=incoming,
            outgoing=outgoing,
            cache=cache_status(self._core),
            slow_count=len(names),
            slow=names[:MOST_NAMES],
            accepted=connections.accepted,
            closed={str(code): count for code, count in sorted(connections.closes.items())},
        )

    def _learn(self, trust: Trust) -> None:
        self.access.learn(trust)
        self.connections.entrance.open = True


def limits_of(section: BrokerSettings) -> BrokerLimits:
    """The core's limits; what is no setting has its default."""
    settings = msgspec.structs.asdict(section)
    return BrokerLimits(**{name: settings[name] for name in BrokerLimits.__struct_fields__ if name in settings})


def _demo_token(section: BrokerSettings) -> str | None:
    """What a broker shows to the coordinator is an operator's too where everybody on the machine knows it."""
    return DEMO_TOKEN if section.token == DEMO_TOKEN and is_loopback(section.host) else None


def _policy(section: BrokerSettings) -> Callable[[Callable[[int], int]], EvictionPolicy]:
    policies: dict[str, Callable[[Callable[[int], int]], EvictionPolicy]] = {
        "least-recently-used": lambda _: LeastRecentlyUsed(),
        "least-subscribed": LeastSubscribed,
        "time-to-live": lambda _: TimeToLive(section.cache_seconds),
    }
    return policies[section.cache_policy]


def _client(section: BrokerSettings, urls: list[str], ca: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=urls[0],
        headers={"Authorization": f"Bearer {section.data_token}"},
        timeout=section.request_seconds,
        trust_env=False,
        verify=trust(ca) if any(url.startswith("https:") for url in urls) else False,
    )
