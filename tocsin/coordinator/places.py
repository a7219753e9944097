"""Who is where, and holds what: in memory, with every change written down."""

from __future__ import annotations

from msgspec.structs import replace

from tocsin.coordinator.ledger import Ledger
from tocsin.coordinator.store.records import DropHeld, Place, PutCursors, PutHeld, PutPlace, State, further
from tocsin.model.histories import Cursor, meant
from tocsin.model.subscriber import Cursors, Held


class Places:
    """All subscribers. Cursors only go forward, whoever reports them and in whatever order, as long as they are counted
    under one incarnation of the channel."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._ledger = ledger
        self._places = {place.subscriber: place for place in state.places}
        self._held = {name: dict(held) for name, held in state.held.items()}
        # Dictionaries as sets that keep their order, so that a simulation can be replayed.
        self._on: dict[str, dict[str, None]] = {}
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
        """Where a subscriber is; one never heard of is nowhere."""
        return self._places.get(subscriber) or Place(subscriber)

    def put(self, place: Place) -> None:
        """Notes a new place."""
        before = self.get(place.subscriber)
        if before.broker is not None:
            self._on[before.broker].pop(place.subscriber, None)
        self._places[place.subscriber] = place
        self._settle(place)
        self._ledger.write(PutPlace(place))

    def register(self, subscriber: str) -> None:
        """Makes a subscriber known."""
        if subscriber not in self._places:
            self.put(Place(subscriber))

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
        """Notes a subscription; False when it was held before."""
        mine = self._held.setdefault(subscriber, {})
        before = mine.get(held.subscription)
        mine[held.subscription] = further(before, held)
        if before != mine[held.subscription]:
            self._ledger.write(PutHeld(subscriber, mine[held.subscription]))
        return before is None

    def drop(self, subscriber: str, subscription: int) -> bool:
        """Notes that a subscription was given up; False when it was not held."""
        if self._held.get(subscriber, {}).pop(subscription, None) is None:
            return False
        self._ledger.write(DropHeld(subscriber, subscription))
        return True

    def advance(self, subscriber: str, cursors: Cursors, broker: str) -> None:
        """Notes how far a subscriber is, by the word of a broker.

        Under another incarnation than before only its own broker's word counts: another's may be of long ago.
        """
        mine, place = self._held.get(subscriber, {}), self.get(subscriber)
        own = broker in (place.broker, place.destination)
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
