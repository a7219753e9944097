"""One of the people: connected with the client library, subscribed, and telling every second where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tocsin
from tocsin.apps.emergency import Interest
from tocsin.client.coordinator import Location, register
from tocsin.crowd.visit import Observer, Visit


@dataclass
class Visitor:
    """Somebody called ``name``, who may come and go. ``operator`` is the token by which they are registered, if any.

    What can go wrong when entering and subscribing is the client library's: it is raised as it is. What happens later
    is told to the observer.
    """

    name: str
    coordinator: str
    operator: str | None
    observer: Observer
    _token: str = ""
    _visit: Visit | None = None

    def __post_init__(self) -> None:
        self._wanted: list[Interest] = []

    @property
    def there(self) -> bool:
        """Whether they are connected, as far as they know."""
        return self._visit is not None

    @property
    def numbers(self) -> list[int]:
        """Of the BE subscriptions they hold, while connected."""
        return self._visit.numbers if self._visit else []

    async def register(self) -> None:
        """Makes them known to the coordinator; an operator may register anybody, also who was there before."""
        self._token = await register(self.coordinator, self.name, self.operator)

    async def enter(self, location: Location) -> None:
        """Connects, and goes on with the subscriptions of before."""
        visit = Visit(self.name, self.observer)
        await visit.begin(tocsin.connect(self.coordinator, self._token, location=location))
        self._visit = visit
        for interest in self._wanted:
            await visit.subscribe(interest)

    async def subscribe(self, interest: Interest) -> None:
        """Subscribes; what comes is counted from then on. Who is not there does so when they come."""
        self._wanted.append(interest)
        if self._visit:
            await self._visit.subscribe(interest)

    async def unsubscribe(self, interest: Interest) -> None:
        """Gives a subscription up, if they are there and have it."""
        if self._visit and interest in self._wanted:
            self._wanted.remove(interest)
            await self._visit.unsubscribe(interest)

    async def leave(self) -> None:
        """Disconnects, if they are connected. The subscriptions stay, as they would when a phone is switched off."""
        visit, self._visit = self._visit, None
        if visit:
            await visit.end()

    def walk(self, location: dict[str, Any], due: float) -> None:
        """Who is there publishes where they are, which was due then."""
        if self._visit:
            self._visit.publish(location, due)
