"""The front door of a subscriber: events in, actions out. It only passes on; the other rooms decide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random

from tocsin.client import events
from tocsin.client.actions import Action, Send, Slowed, State, Troubled
from tocsin.client.connection import Connection
from tocsin.client.inbox import Inbox
from tocsin.client.publisher import Publisher
from tocsin.client.rules import Rules
from tocsin.client.subscriptions import Subscriptions
from tocsin.client.wire import decode, encode
from tocsin.errors import InvalidError
from tocsin.model.subscriber import (
    VERSION,
    Answer,
    Ended,
    Error,
    Gap,
    Held,
    Login,
    Logout,
    Moved,
    Notes,
    Published,
    Renewed,
    Request,
    Slow,
    Subscribed,
    Unsubscribed,
    Welcome,
)


class Core:
    """A subscriber without sockets, clock or threads.

    Give it every event as it happens and carry out its actions in order; after each event, give it a Tick at
    :meth:`wake`, unless another event comes first. Time is any clock that does not go back. ``random`` spreads the
    waits before reconnections.

    The application gets each note once, in order per subscription, whatever happens to brokers and connections, as
    long as this core lives: a new one starts from what was acknowledged, so notes that were delivered but whose Taken
    had not yet reached a broker come again.
    """

    def __init__(self, random: Random, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        ids = count(1)
        self._token = ""
        self._connection = Connection(self._rules, random)
        self._inbox = Inbox(self._rules)
        self._subscriptions = Subscriptions(self._rules, self._inbox, ids)
        self._publisher = Publisher(self._rules, ids)
        self._renew_at = 0.0
        # Of a welcome that comes in parts: the connection it comes on, and what was listed so far.
        self._listed: tuple[int, list[Held]] = (0, [])

    @property
    def state(self) -> State:
        """How the subscriber is connected."""
        return self._connection.state

    @property
    def unanswered_bytes(self) -> int:
        """The bytes of published records that have no answer yet; a careful program stops at 0."""
        return self._publisher.kept_bytes

    @property
    def settled(self) -> bool:
        """Whether the subscriber is served, and waits for no answer."""
        return self.state is State.SERVING and self._subscriptions.settled

    def incarnation(self, subscription: int) -> str:
        """Under which incarnation the notes of a subscription are counted."""
        return self._inbox.incarnation(subscription)

    def confirm(self, wish: events.Subscribe, held: Held) -> None:
        """Has a subscription that was made in its name, without a word on any connection: for simulations."""
        self._subscriptions.confirm(wish, held)

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done because of an event."""
        actions = self._act(now, event)
        # Most of the time there is nothing else to do, and thousands of subscribers in a program ask.
        if not self._connection.settled:
            actions += self._connection.tick(now)
        if self._inbox.deaf:
            actions += self._renewal(now)
        actions += self._sent(self._due(now))
        return actions

    def wake(self) -> float | None:
        """When a Tick is wanted, if no other event comes before."""
        times = [] if self._connection.settled else [self._connection.wake()]
        serving = self._connection.serving
        if serving is not None:
            times += [self._inbox.wake(), self._publisher.wake()]
            times += [] if self._connection.entering else [self._subscriptions.wake()]
            times += [self._renew_at] if self._inbox.deaf and self._wants_renewal(serving) else []
        known = [time for time in times if time is not None]
        return min(known) if known else None

    def _act(self, now: float, event: events.Event) -> list[Action]:
        match event:
            case events.Received(connection, text):
                return self._received(now, connection, text)
            case events.Taken(subscription, execution, epoch):
                self._inbox.take(now, subscription, execution, epoch)
            case events.Publish(ref, feed, records):
                return self._publisher.publish(now, ref, feed, list(records))
            case events.Subscribe():
                return self._subscriptions.subscribe(event)
            case events.Unsubscribe(ref):
                return self._subscriptions.unsubscribe(ref)
            case _:
                return self._connected(now, event)
        return []

    def _connected(self, now: float, event: events.Event) -> list[Action]:
        match event:
            case events.Start(token):
                self._token = token
                return self._connection.start(now)
            case events.Stop():
                return [*self._sent([*self._inbox.flush(), Logout()]), *self._connection.stop()]
            case events.BrokerFound(url):
                return self._connection.found(now, url)
            case events.CoordinatorFailed(reason):
                return self._connection.unfound(now, reason)
            case events.Opened(connection):
                return self._login(connection) if self._connection.opened(connection) else []
            case events.Lost(connection, code):
                return self._connection.lost(now, connection, code)
        return []

    def _login(self, connection: int) -> list[Action]:
        login = Login(self._token, VERSION, self._inbox.enter(connection))
        return [Send(connection, encode(login)), *self._connection.entered()]

    def _received(self, now: float, connection: int, text: str | bytes) -> list[Action]:
        if not self._connection.knows(connection):
            return []
        try:
            return self._answered(now, connection, decode(text))
        except InvalidError as error:
            return [Troubled("unreadable", str(error)), *self._connection.drop(now, connection)]

    def _answered(self, now: float, connection: int, answer: Answer) -> list[Action]:
        """Raises InvalidError when the broker should not have sent this now."""
        if isinstance(answer, Error):
            return self._failed(now, answer)
        if isinstance(answer, Welcome) is not self._connection.awaits_welcome(connection):
            raise InvalidError(f"the broker sent {type(answer).__name__} out of turn")
        match answer:
            case Notes(notes):
                return [*self._inbox.receive(connection, notes)]
            case Published(id, _, refused):
                return self._publisher.published(id, refused)
            case Gap():
                return [*self._inbox.skip(connection, answer)]
            case Welcome():
                return self._welcomed(now, connection, answer)
            case Subscribed(id, held, history):
                actions = self._subscriptions.subscribed(id, held)
                self._inbox.told(connection, held, history)
                return actions
            case Renewed(was, held, history):
                actions = self._subscriptions.renewed(was, held)
                self._inbox.told(connection, held, history)
                return actions
            case Ended(number, code, message):
                return self._subscriptions.ended(number, code, message)
            case Unsubscribed(id):
                return self._subscriptions.unsubscribed(id)
            case Moved(url):
                return self._connection.move(now, url)
            case Slow(waiting):
                return [Slowed(waiting)]

    def _welcomed(self, now: float, connection: int, welcome: Welcome) -> list[Action]:
        if not 1 <= welcome.version <= VERSION:
            raise InvalidError(f"the broker speaks version {welcome.version}; this program speaks up to {VERSION}")
        before, listed = self._listed
        held = [*(listed if before == connection else ()), *welcome.subscriptions]
        self._listed = (connection, held if welcome.more else [])
        if welcome.more:
            return []
        away = self._connection.serving is None
        actions = self._connection.welcomed(now, connection)
        actions += self._subscriptions.welcomed(held)
        for each in held:
            self._inbox.told(connection, each, welcome.histories.get(each.channel, []))
        self._inbox.welcomed(now, held, welcome.newest if away else {})
        self._publisher.again()
        return actions

    def _failed(self, now: float, error: Error) -> list[Action]:
        for room in (self._subscriptions, self._publisher):
            actions = room.failed(now, error)
            if actions is not None:
                return actions
        return [Troubled(error.code, error.message)]

    def _wants_renewal(self, serving: int) -> bool:
        return self._connection.state is State.SERVING and self._inbox.thirsty(serving)

    def _renewal(self, now: float) -> list[Action]:
        serving = self._connection.serving
        if serving is None or now < self._renew_at or not self._wants_renewal(serving):
            return []
        self._renew_at = now + self._rules.renew_seconds
        return self._connection.renew(now)

    def _due(self, now: float) -> list[Request]:
        if self._connection.serving is None:
            return []
        asked = [] if self._connection.entering else self._subscriptions.due(now)
        return [*asked, *self._inbox.due(now), *self._publisher.due(now)]

    def _sent(self, requests: Sequence[Request]) -> list[Action]:
        serving = self._connection.serving if requests else None
        return [Send(serving, encode(request)) for request in requests] if serving is not None else []
