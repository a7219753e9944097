"""The workload as it is right now: what the coordinator writes every change into.

Brokers, subscribers and BE subscriptions come and go, people subscribe and move, rates change, and the loads are always
current. Each change costs as much as what it touches: a move or a subscription the subscriber's own row, a rate the
number of brokers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tocsin.balance.live.brokers import BrokerTable, Location, Locations, check_location
from tocsin.balance.live.idle import Idle
from tocsin.balance.live.loads import NOWHERE, LiveLoads
from tocsin.balance.live.numbering import Numbering, grow, whole_numbers
from tocsin.balance.live.rows import RowPool
from tocsin.balance.live.snapshot import WorkloadSnapshot
from tocsin.balance.model.loads import count_loads
from tocsin.balance.model.plan import LoadFigures, Moves
from tocsin.balance.model.workload import Int32s, Int64s, Workload, check
from tocsin.balance.placement.placement import View
from tocsin.errors import InvalidError


class LiveWorkload:
    """Everything is known by a number that it gives out; numbers of what has left are given out again.

    An operation that makes no sense raises :class:`InvalidError` or :class:`NotFoundError` and changes nothing, a batch
    as a whole. A live workload is for one thread at a time; its :meth:`snapshot` is for any.
    """

    def __init__(self) -> None:
        nobody = Workload(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64), 0)
        self._fill(nobody, np.empty(0, np.int32))

    @classmethod
    def of(cls, workload: Workload, assignment: Int32s) -> LiveWorkload:
        """One that begins with a workload, whose row numbers become its numbers."""
        check(workload, assignment)
        live = cls.__new__(cls)
        live._fill(workload, assignment)
        return live

    def _fill(self, workload: Workload, assignment: Int32s) -> None:
        self._brokers = BrokerTable(workload, assignment)
        self._subscribers = Numbering("subscriber", workload.subscribers)
        self._subscriptions = Numbering("BE subscription", workload.subscriptions)
        self._rows = RowPool(workload.indptr, workload.idx)
        held, incoming, outgoing = count_loads(
            workload.indptr, workload.idx, workload.rates, assignment, workload.brokers
        )
        self._loads = LiveLoads(workload.rates, held, incoming, outgoing)
        self._assignment = np.array(assignment, np.int32)
        self._locations = Locations(workload.subscriber_locations, workload.subscribers)
        self._idle = Idle(workload.subscribers)

    def add_broker(self, capacity: float = 1.0, location: Location | None = None) -> int:
        """A new and empty broker. Capacities are in any unit; where they differ, load means load ÷ capacity."""
        broker = self._brokers.add(capacity, location)
        self._loads.extend_to(self._subscriptions.top, self._brokers.top)
        return broker

    def remove_broker(self, broker: int) -> None:
        """Forgets a broker that nobody is on."""
        self._brokers.remove(broker)

    def set_capacity(self, broker: int, capacity: float) -> None:
        """What a broker can take."""
        self._brokers.resize(broker, capacity)

    def locate_broker(self, broker: int, location: Location | None) -> None:
        """Where a broker is; None: not known."""
        self._brokers.check(broker)
        self._brokers.locations.put(broker, location)

    def add_subscriber(self, broker: int, location: Location | None = None) -> int:
        """A new subscriber on a broker, who holds nothing yet."""
        self._brokers.check(broker)
        check_location(location)
        subscriber = self._subscribers.take()
        self._rows.extend_to(self._subscribers.top)
        self._assignment = grow(self._assignment, self._subscribers.top)
        self._assignment[subscriber] = broker
        self._locations.put(subscriber, location)
        self._brokers.population[broker] += 1
        self._idle.come(subscriber, broker)
        return subscriber

    def remove_subscriber(self, subscriber: int) -> None:
        """Forgets a subscriber and all that it holds."""
        broker = self.broker_of(subscriber)
        self._loads.carry(self._rows[subscriber], broker, NOWHERE)
        self._brokers.population[broker] -= 1
        self._idle.go(subscriber, broker)
        self._rows.clear(subscriber)
        self._subscribers.release(subscriber)

    def suspend(self, subscribers: npt.ArrayLike) -> None:
        """These hold nothing from now on, and no placement reckons with what they may come to hold. They stay where
        they are, are moved like others, and may subscribe again when they were resumed."""
        who = np.unique(self._subscribers.check_all(subscribers))
        who = who[~self._idle.which_suspended(who)]
        at = self._assignment[who]
        self._loads.carry_all(self._rows, who, at, np.full(len(who), NOWHERE, np.int32))
        for subscriber in who.tolist():
            self._rows.clear(subscriber)
        self._idle.suspend(who, at)

    def resume(self, subscriber: int) -> None:
        """Somebody who was suspended counts again, and holds nothing yet."""
        broker = self.broker_of(subscriber)
        if self._idle.which_suspended(np.array([subscriber])).any():
            self._idle.resume(subscriber, broker)

    def locate_subscriber(self, subscriber: int, location: Location | None) -> None:
        """Where a subscriber is; None: not known."""
        self._subscribers.check(subscriber)
        self._locations.put(subscriber, location)

    def add_subscription(self, rate: int = 0) -> int:
        """A new BE subscription, which nobody holds yet."""
        (checked,) = _rates(rate)
        subscription = self._subscriptions.take()
        self._loads.extend_to(self._subscriptions.top, self._brokers.top)
        self._loads.rates[subscription] = checked
        return subscription

    def remove_subscription(self, subscription: int) -> None:
        """Forgets a BE subscription that nobody holds."""
        if holders := self.holders(subscription):
            raise InvalidError(f"BE subscription {subscription} still has {holders} holders; unsubscribe them first")
        self._subscriptions.release(subscription)

    def set_rates(self, subscriptions: npt.ArrayLike, rates: npt.ArrayLike) -> None:
        """λ of one BE subscription, or of many: ``rates[n]`` for ``subscriptions[n]``."""
        which, wanted = self._subscriptions.check_all(subscriptions), _rates(rates)
        if len(which) != len(wanted):
            raise InvalidError(f"{len(wanted)} rates for {len(which)} BE subscriptions; give one for each")
        if ((self._loads.rates[which] > 0) != (wanted > 0)).any():
            self._idle.recount()
        self._loads.rate(which, wanted)

    def subscribe(self, subscribers: npt.ArrayLike, subscriptions: npt.ArrayLike) -> None:
        """``subscribers[n]`` now holds ``subscriptions[n]``; one subscriber may be given for all of them."""
        who, what = self._entries(subscribers, subscriptions)
        held = self._rows.holding(who, what)
        if held.any():
            raise InvalidError(f"subscriber {who[held][0]} holds BE subscription {what[held][0]} already")
        if (suspended := self._idle.which_suspended(who)).any():
            raise InvalidError(f"subscriber {who[suspended][0]} is suspended, and can hold nothing; resume it first")
        self._rows.append(who, what)
        self._loads.enter(self._assignment[who], what)
        self._idle.enter(who, self._assignment[who], self._loads.rates[what])

    def unsubscribe(self, subscribers: npt.ArrayLike, subscriptions: npt.ArrayLike) -> None:
        """``subscribers[n]`` no longer holds ``subscriptions[n]``; one subscriber may be given for all of them."""
        who, what = self._entries(subscribers, subscriptions)
        held = self._rows.holding(who, what)
        if not held.all():
            raise InvalidError(f"subscriber {who[~held][0]} does not hold BE subscription {what[~held][0]}")
        self._rows.remove(who, what)
        self._loads.leave(self._assignment[who], what)
        self._idle.recount()

    def _entries(self, subscribers: npt.ArrayLike, subscriptions: npt.ArrayLike) -> tuple[Int64s, Int32s]:
        """Pairs from outside, each once."""
        who, what = self._subscribers.check_all(subscribers), self._subscriptions.check_all(subscriptions)
        if np.ndim(subscribers) == 0:
            who = np.repeat(who, len(what))
        if len(who) != len(what):
            raise InvalidError(f"{len(who)} subscribers for {len(what)} BE subscriptions; give pairs")
        pairs = np.sort(who * self._subscriptions.top + what)
        if (pairs[1:] == pairs[:-1]).any():
            pair = int(pairs[1:][pairs[1:] == pairs[:-1]][0])
            subscriber, subscription = divmod(pair, self._subscriptions.top)
            raise InvalidError(f"subscriber {subscriber} and BE subscription {subscription} are given twice")
        return who, what.astype(np.int32)

    def move(self, subscriber: int, broker: int) -> None:
        """Assigns a subscriber to another broker."""
        source = self.broker_of(subscriber)
        self._brokers.check(broker)
        if source == broker:
            return
        self._loads.carry(self._rows[subscriber], source, broker)
        self._assignment[subscriber] = broker
        self._idle.carry(np.array([subscriber]), np.array([source], np.int32), np.array([broker], np.int32))
        self._brokers.population[source] -= 1
        self._brokers.population[broker] += 1

    def apply(self, moves: Moves) -> None:
        """Carries out moves that are given in its own numbers (:meth:`WorkloadSnapshot.moves`). They are refused, all
        of them, when a subscriber or broker has left or somebody is no longer where they begin."""
        who, destination = self._subscribers.check_all(moves.subscriber), self._brokers.check_all(moves.destination)
        source = self._assignment[who]
        if len(np.unique(who)) < len(who):
            raise InvalidError("a subscriber is moved twice; each may be in the moves once")
        if (source != moves.source).any():
            at = int(np.flatnonzero(source != moves.source)[0])
            raise InvalidError(
                f"subscriber {who[at]} is on broker {source[at]}, no longer on {moves.source[at]}; make a new plan"
            )
        self._loads.carry_all(self._rows, who, source, destination.astype(np.int32))
        self._assignment[who] = destination
        self._idle.carry(who, source, destination.astype(np.int32))
        np.subtract.at(self._brokers.population, source, 1)
        np.add.at(self._brokers.population, destination, 1)

    @property
    def brokers(self) -> Int64s:
        """The numbers of all brokers, rising. :meth:`figures` and :attr:`population` are in this order."""
        return self._brokers.numbers()

    @property
    def subscribers(self) -> Int64s:
        """The numbers of all subscribers, rising."""
        return self._subscribers.numbers()

    @property
    def subscriptions(self) -> Int64s:
        """The numbers of all BE subscriptions, rising."""
        return self._subscriptions.numbers()

    @property
    def population(self) -> Int64s:
        """How many subscribers are on each broker."""
        return self._brokers.population[self.brokers]

    def broker_of(self, subscriber: int) -> int:
        """Where a subscriber is assigned."""
        self._subscribers.check(subscriber)
        return int(self._assignment[subscriber])

    def held_by(self, subscriber: int) -> Int32s:
        """The BE subscriptions of a subscriber, in no order."""
        self._subscribers.check(subscriber)
        return self._rows[subscriber].copy()

    def holders(self, subscription: int) -> int:
        """How many subscribers hold a BE subscription."""
        self._subscriptions.check(subscription)
        return self._loads.holders(subscription)

    def rate_of(self, subscription: int) -> int:
        """λ of a BE subscription."""
        self._subscriptions.check(subscription)
        return int(self._loads.rates[subscription])

    def figures(self) -> LoadFigures:
        """The loads of all brokers as they are now."""
        brokers = self.brokers
        incoming, outgoing = self._loads.incoming[brokers], self._loads.outgoing[brokers]
        capacity = self._brokers.capacities()
        loads = (incoming + outgoing).astype(np.float64)
        return LoadFigures(incoming, outgoing, loads if capacity is None else loads * (1.0 / capacity))

    def view(self, closed: Iterable[int] = ()) -> View:
        """The brokers as a placement sees them, by their numbers. ``closed`` take no newcomers. It copies only what is
        one per broker, and holds until the next change."""
        top = self._brokers.top
        open_, weights = self._brokers.used[:top].copy(), np.ones(top)
        open_[[broker for broker in closed if broker < top]] = False
        if self._brokers.capacities() is not None:
            weights = 1.0 / self._brokers.capacity[:top]
        return View(
            loads=(self._loads.incoming[:top] + self._loads.outgoing[:top]) * weights,
            weights=weights,
            open=open_,
            locations=self._brokers.locations.upto(top, self.brokers),
            rates=self._loads.rates,
            held=self._loads.held,
            population=self._brokers.population[:top] - self._idle.resting(top),
            idle=self._idle.counts(top, self._subscribers, self._assignment, self._rows, self._loads.rates),
        )

    def snapshot(self) -> WorkloadSnapshot:
        """All of it for a planner, as dense rows."""
        brokers, subscribers, subscriptions = self.brokers, self.subscribers, self.subscriptions
        indptr, idx = self._rows.gather(subscribers, _ranks(subscriptions, self._subscriptions.top))
        workload = Workload(
            indptr,
            idx,
            self._loads.rates[subscriptions],
            len(brokers),
            capacity=self._brokers.capacities(),
            broker_locations=self._brokers.locations.of(brokers),
            subscriber_locations=self._locations.of(subscribers),
        )
        assignment = _ranks(brokers, self._brokers.top)[self._assignment[subscribers]]
        return WorkloadSnapshot(workload, assignment, subscribers, subscriptions, brokers)


def _rates(rates: npt.ArrayLike) -> Int64s:
    checked = whole_numbers(rates, "rates")
    if (checked < 0).any():
        raise InvalidError(f"a rate of {checked[checked < 0][0]} is not possible; rates must not be negative")
    return checked


def _ranks(numbers: Int64s, top: int) -> Int32s:
    """Of each number below ``top`` that is among these, its place among them."""
    ranks = np.empty(top, np.int32)
    ranks[numbers] = np.arange(len(numbers), dtype=np.int32)
    return ranks
