"""The live workload by names, where the balancer knows everything by numbers.

Whoever is being moved counts at the destination already, so that those who are placed at the same time see each other,
and a plan begins where the last one will have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from tocsin.balance.live.brokers import Location, check_location
from tocsin.balance.live.workload import LiveWorkload
from tocsin.balance.model.plan import Moves
from tocsin.balance.placement.placement import Newcomer, View
from tocsin.coordinator.store.records import BrokerRecord

_FASTEST: Final = 1e12
MOST_UNHELD: Final = 1_000_000
"""Of so many BE subscriptions that nobody holds, or only people who are away, the rates stay known."""
_WORD: Final = 1 << 64
_GOLDEN: Final = 0x9E3779B97F4A7C15


class NamedWorkload:
    """A live workload, and which names its numbers stand for.

    Whoever is suspended weighs nothing, wherever they are seated. A rate stays known when nobody holds its subscription
    any more, or nobody who weighs: brokers report only rates that have changed. Of too many, those that were known for
    longest are forgotten.
    """

    def __init__(self) -> None:
        self._live = LiveWorkload()
        self._entering: list[tuple[int, int]] = []
        self._unheld: dict[int, int] = {}
        self._brokers: dict[str, int] = {}
        self._subscribers: dict[str, int] = {}
        self._subscriptions: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._people: dict[int, str] = {}
        self._ids: dict[int, int] = {}
        self._locations: dict[str, Location] = {}
        self._suspended: dict[str, None] = {}

    @property
    def live(self) -> LiveWorkload:
        """All of it. What was held since the last look is entered now, at once: one by one is slow."""
        if self._entering:
            subscribers, subscriptions = zip(*self._entering, strict=True)
            self._entering.clear()
            self._live.subscribe(subscribers, subscriptions)
        return self._live

    def open(self, broker: BrokerRecord) -> None:
        """A broker takes part, or has changed; a capacity or location that cannot be is an InvalidError."""
        if broker.name not in self._brokers:
            number = self._live.add_broker(broker.capacity, broker.location)
            self._brokers[broker.name], self._names[number] = number, broker.name
            return
        self._live.set_capacity(self._brokers[broker.name], broker.capacity)
        self._live.locate_broker(self._brokers[broker.name], broker.location)

    def close(self, broker: str) -> None:
        """A broker that is dead no longer takes part, once nobody counts as being there."""
        number = self._brokers.get(broker)
        if number is not None and not self.population(broker):
            self._live.remove_broker(number)
            del self._brokers[broker], self._names[number]

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._subscribers

    def is_suspended(self, subscriber: str) -> bool:
        """Whether somebody weighs nothing, as they are away."""
        return subscriber in self._suspended

    def population(self, broker: str) -> int:
        """How many count as being on a broker."""
        at = int(np.searchsorted(self._live.brokers, self._brokers[broker]))
        return int(self._live.population[at])

    def planned_load(self, broker: str) -> tuple[float, float]:
        """The load that a broker is planned to have, in bytes per second whatever its capacity, and the mean of all."""
        figures = self.live.figures()
        loads = figures.incoming + figures.outgoing
        at = int(np.searchsorted(self._live.brokers, self._brokers[broker]))
        return float(loads[at]), float(loads.mean())

    def number(self, broker: str) -> int | None:
        """A broker's number; None when it does not take part."""
        return self._brokers.get(broker)

    def name(self, number: int) -> str:
        """A broker's name."""
        return self._names[number]

    def seat(self, subscriber: str, broker: str | None, held: Iterable[int]) -> None:
        """Where a subscriber counts, with all it holds; nowhere, if that broker does not take part."""
        number, at = self._subscribers.get(subscriber), self._brokers.get(broker or "")
        if at is None:
            self._unseat(subscriber)
        elif number is not None:
            self._live.move(number, at)
        else:
            number = self._live.add_subscriber(at, self._locations.get(subscriber))
            self._subscribers[subscriber], self._people[number] = number, subscriber
            if subscriber in self._suspended:
                self._live.suspend(number)
            for subscription in held:
                self.hold(subscriber, subscription)

    def suspend(self, subscribers: Iterable[str]) -> None:
        """These weigh nothing from now on, wherever they are."""
        fresh = [each for each in subscribers if each not in self._suspended]
        if not fresh:
            return
        self._suspended.update(dict.fromkeys(fresh))
        numbers = [self._subscribers[each] for each in fresh if each in self._subscribers]
        held = dict.fromkeys(number for each in numbers for number in self.live.held_by(each).tolist())
        self._live.suspend(numbers)
        for number in held:
            self._sweep(number)

    def resume(self, subscriber: str, held: Iterable[int]) -> None:
        """Somebody weighs again, with all it holds."""
        if subscriber in self._suspended:
            del self._suspended[subscriber]
            if subscriber in self._subscribers:
                self._live.resume(self._subscribers[subscriber])
            for subscription in held:
                self.hold(subscriber, subscription)

    def forget(self, subscriber: str) -> None:
        """Somebody is no more."""
        self._unseat(subscriber)
        self._suspended.pop(subscriber, None)
        self._locations.pop(subscriber, None)

    def locate(self, subscriber: str, location: Location) -> None:
        """Where in the world a subscriber is; what is no location is an InvalidError."""
        check_location(location)
        self._locations[subscriber] = location
        if subscriber in self._subscribers:
            self._live.locate_subscriber(self._subscribers[subscriber], location)

    def hold(self, subscriber: str, subscription: int) -> None:
        """A subscriber holds one more BE subscription."""
        if subscriber not in self._subscribers or subscriber in self._suspended:
            return
        if subscription not in self._subscriptions:
            number = self._live.add_subscription(self._unheld.pop(subscription, 0))
            self._subscriptions[subscription], self._ids[number] = number, subscription
        self._entering.append((self._subscribers[subscriber], self._subscriptions[subscription]))

    def drop(self, subscriber: str, subscription: int) -> None:
        """A subscriber holds one less."""
        if subscriber not in self._subscribers or subscriber in self._suspended:
            return
        number = self._subscriptions[subscription]
        self.live.unsubscribe(self._subscribers[subscriber], [number])
        self._sweep(number)

    def rate(self, rates: dict[int, float]) -> None:
        """Notes the rates of BE subscriptions, in bytes per second. Impossible ones are passed over."""
        known, wanted = list[int](), list[int]()
        for subscription, rate in rates.items():
            if not 0 <= rate <= _FASTEST:
                continue
            number, whole = self._subscriptions.get(subscription), whole_rate(subscription, rate)
            if number is None:
                self._remember(subscription, whole)
            else:
                known.append(number)
                wanted.append(whole)
        if known:
            self._live.set_rates(known, wanted)

    def rate_of(self, subscription: int) -> int:
        """λ of a BE subscription, as far as it is known."""
        number = self._subscriptions.get(subscription)
        return self._unheld.get(subscription, 0) if number is None else self._live.rate_of(number)

    def view(self, closed: Iterable[str]) -> View:
        """The brokers as a placement sees them."""
        return self.live.view([self._brokers[broker] for broker in closed if broker in self._brokers])

    def newcomer(self, subscriber: str, held: Iterable[int]) -> Newcomer:
        """A subscriber as a placement sees it."""
        numbers = [self._subscriptions[each] for each in held if each in self._subscriptions]
        return Newcomer(self._locations.get(subscriber), np.array(numbers, np.int32))

    def steps(self, moves: Moves) -> Iterator[tuple[str, str, str]]:
        """Moves by name: subscriber, source, destination. What has left meanwhile is passed over."""
        columns = moves.subscriber.tolist(), moves.source.tolist(), moves.destination.tolist()
        for subscriber, source, destination in zip(*columns, strict=True):
            if subscriber in self._people and source in self._names and destination in self._names:
                yield self._people[subscriber], self._names[source], self._names[destination]

    def to_moves(self, subscribers: Iterable[str]) -> Moves:
        """These subscribers as moves that were made, for the controller."""
        numbers = [self._subscribers[each] for each in subscribers if each in self._subscribers]
        at = np.array([self._live.broker_of(number) for number in numbers], np.int32)
        return Moves(np.array(numbers, np.int64), at, at, [])

    def _unseat(self, subscriber: str) -> None:
        number = self._subscribers.pop(subscriber, None)
        if number is None:
            return
        held = self.live.held_by(number).tolist()
        self._live.remove_subscriber(number)
        del self._people[number]
        for subscription in held:
            self._sweep(subscription)

    def _sweep(self, number: int) -> None:
        """Forgets a BE subscription that nobody holds."""
        if not self.live.holders(number):
            subscription, rate = self._ids.pop(number), self._live.rate_of(number)
            self._live.remove_subscription(number)
            del self._subscriptions[subscription]
            self._remember(subscription, rate)

    def _remember(self, subscription: int, rate: int) -> None:
        """The rate of what nobody holds."""
        self._unheld.pop(subscription, None)
        if rate:
            self._unheld[subscription] = rate
        if len(self._unheld) > MOST_UNHELD:
            del self._unheld[next(iter(self._unheld))]


def whole_rate(subscription: int, rate: float) -> int:
    """A rate in whole bytes per second, up or down by the subscription's number.

    Of many with a third of a byte per second a third count as one and the others as none, always the same ones: rounded
    to the nearest they would weigh nothing, however many they are.
    """
    return int(rate + subscription * _GOLDEN % _WORD / _WORD)
