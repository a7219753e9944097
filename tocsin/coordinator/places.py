"""Who is where, and holds what: in memory, with every change written down."""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from tocsin.coordinator.ledger import Ledger
from tocsin.coordinator.store.records import DropHeld, DropPlace, Place, PutCursors, PutHeld, PutPlace, State
from tocsin.model.histories import Cursor, meant
from tocsin.model.subscriber import Cursors, Held


class Places:
    """All subscribers, and who was one until lately. Cursors only go forward, whoever reports them and in whatever
    order, as long as they are counted under one incarnation of the channel."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._ledger = ledger
        self._places = {place.subscriber: place for place in state.places if not place.gone}
        gone = sorted((place for place in state.places if place.gone), key=lambda place: place.gone)
        self._gone = {place.subscriber: place for place in gone}
        self._held = {name: dict(held) for name, held in state.held.items()}
        # Dictionaries as sets that keep their order, so that a simulation can be replayed.
        self._on: dict[str, dict[str, None]] = {}
        # The broker that each has left last, which may still have to tell how far they were.
        self._left: dict[str, str] = {}
        for place in state.places:
            self._settle(place)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._places

    def all(self) -> list[Place]:
        """Everybody."""
        return list(self._places.values())

    def get(self, subscriber: str) -> Place:
        """Where a subscriber is; one never heard of, or removed, is nowhere."""
        return self._places.get(subscriber) or self._gone.get(subscriber) or Place(subscriber)

    def put(self, place: Place) -> None:
        """Notes a new place."""
        before = self.get(place.subscriber)
        if before.broker is not None:
            self._on[before.broker].pop(place.subscriber, None)
        for broker in {before.broker, before.destination} - {place.broker, place.destination, None}:
            self._left[place.subscriber] = str(broker)
        here, there = (self._gone, self._places) if place.gone else (self._places, self._gone)
        there.pop(place.subscriber, None)
        here[place.subscriber] = place
        self._settle(place)
        self._ledger.write(PutPlace(place))

    def register(self, subscriber: str, now: float, registration: int = 0) -> None:
        """Makes a subscriber known, who is another than the one of this name who was removed."""
        if subscriber not in self._places:
            before = self.get(subscriber)
            registration = max(registration, before.registration + bool(before.gone))
            self.put(Place(subscriber, coming=before.coming, seen=now, registration=registration))

    def remove(self, subscriber: str, until: float, registration: int = 0) -> None:
        """Forgets a subscriber with all that it holds; that it was removed is remembered until then.

        So no number of a stay is given again that some broker may have seen, and no token of before is taken, nor one
        of this ``registration``, which may be later than the known one.
        """
        for subscription in list(self._held.pop(subscriber, {})):
            self._ledger.write(DropHeld(subscriber, subscription))
        # Who was removed before is remembered for longer now, and comes last among those who are to be forgotten.
        place = self._gone.pop(subscriber, None) or self.get(subscriber)
        last = max(registration, place.registration)
        self.put(Place(subscriber, coming=place.coming, registration=last, gone=until))
        self._left.pop(subscriber, None)

    def forget(self, now: float, most: int) -> None:
        """Forgets that some were removed of whom nothing can be heard any more, so many at once."""
        while most and self._gone and self.forgotten_at() <= now:
            subscriber = next(iter(self._gone))
            del self._gone[subscriber]
            self._ledger.write(DropPlace(subscriber))
            most -= 1

    def forgotten_at(self) -> float:
        """When the next that was removed may be forgotten."""
        return next(iter(self._gone.values())).gone if self._gone else inf

    def on(self, broker: str) -> list[Place]:
        """Who belongs to a broker."""
        return [self._places[subscriber] for subscriber in self._on.get(broker, ())]

    def count(self, broker: str) -> int:
        """How many belong to a broker."""
        return len(self._on.get(broker, ()))

    def belongs(self, subscriber: str, stay: int, broker: str) -> bool:
        """Whether a broker is to have this stay: the present one, or the one a move leads to."""
        place = self.get(subscriber)
        return (place.broker, place.stay) == (broker, stay) or (place.destination, place.coming) == (broker, stay)

    def held(self, subscriber: str) -> list[Held]:
        """What a subscriber holds, with its cursors."""
        return list(self._held.get(subscriber, {}).values())

    def hold(self, subscriber: str, held: Held) -> bool:
        """Notes a subscription; False when it was held before.

        Then it goes on from where it was. A broker that does not hold it yet, because the subscriber has just come,
        would begin it later: whatever is between would be nobody's.
        """
        mine = self._held.setdefault(subscriber, {})
        before = mine.get(held.subscription)
        if before and before.incarnation == held.incarnation:
            held = replace(held, cursor=before.cursor)
        mine[held.subscription] = held
        if before != held:
            self._ledger.write(PutHeld(subscriber, held))
        return before is None

    def drop(self, subscriber: str, subscription: int) -> bool:
        """Notes that a subscription was given up; False when it was not held."""
        if self._held.get(subscriber, {}).pop(subscription, None) is None:
            return False
        self._ledger.write(DropHeld(subscriber, subscription))
        return True

    def advance(self, subscriber: str, cursors: Cursors, broker: str) -> None:
        """Notes how far a subscriber is, by the word of a broker: the one it is on, comes to, or has left last.

        Under another incarnation than before only its own broker's word counts: another's may be of long ago. Where
        somebody of this name was removed before, another's may be of them.
        """
        mine, place = self._held.get(subscriber, {}), self.get(subscriber)
        if place.registration and broker != place.broker:
            return
        own = broker in (place.broker, place.destination)
        if not own and self._left.get(subscriber) != broker:
            return
        told = {key: meant(cursor, mine[key].incarnation) for key, cursor in cursors.items() if key in mine}
        news = {key: cursor for key, cursor in told.items() if _is_news(mine[key], cursor, own)}
        for subscription, cursor in news.items():
            held = mine[subscription]
            mine[subscription] = replace(held, cursor=cursor.execution, incarnation=cursor.incarnation)
        if news:
            self._ledger.write(PutCursors(subscriber, news))

    def _settle(self, place: Place) -> None:
        if place.broker is not None:
            self._on.setdefault(place.broker, {})[place.subscriber] = None


def _is_news(held: Held, cursor: Cursor, own: bool) -> bool:
    if cursor.incarnation == held.incarnation:
        return cursor.execution > held.cursor
    return own
