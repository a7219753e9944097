"""The front door of a subscriber: events in, actions out. It only passes on; the other parts decide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random

from tocsin.client.core import events
from tocsin.client.core.actions import Action, ConnectionState, Send, Slowed, Troubled
from tocsin.client.core.connector import Connector
from tocsin.client.core.inbox import Inbox
from tocsin.client.core.publications import Publications
from tocsin.client.core.subscriptions import WantedSubscriptions
from tocsin.client.core.wire import decode, encode
from tocsin.client.rules import Rules
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


class SubscriberCore:
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
        self._connector = Connector(self._rules, random)
        self._inbox = Inbox(self._rules)
        self._subscriptions = WantedSubscriptions(self._rules, self._inbox, ids)
        self._publications = Publications(self._rules, ids)
        self._renew_at = 0.0
        # Of a welcome that comes in parts: the connection it comes on, and what was listed so far.
        self._listed: tuple[int, list[Held]] = (0, [])

    @property
    def state(self) -> ConnectionState:
        """How the subscriber is connected."""
        return self._connector.state

    @property
    def unanswered_bytes(self) -> int:
        """The bytes of published records that have no answer yet; a careful program stops at 0."""
        return self._publications.kept_bytes

    @property
    def is_settled(self) -> bool:
        """Whether the subscriber is served, and waits for no answer."""
        return self._connector.state is ConnectionState.SERVING and self._subscriptions.is_settled

    def incarnation(self, subscription: int) -> str:
        """Under which incarnation the notes of a subscription are counted."""
        return self._inbox.incarnation(subscription)

    def confirm(self, call: events.Subscribe, held: Held) -> None:
        """Has a subscription that was made in its name, without a word on any connection: for simulations."""
        self._subscriptions.confirm(call, held)

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done because of an event."""
        actions = self._act(now, event)
        # Most of the time there is nothing else to do, and thousands of subscribers in a program ask.
        if not self._connector.is_settled:
            actions += self._connector.tick(now)
        if self._inbox.deaf:
            actions += self._renewal(now)
        actions += self._send(self._due(now))
        return actions

    def wake(self) -> float | None:
        """When a Tick is wanted, if no other event comes before."""
        connector, inbox = self._connector, self._inbox
        times = [] if connector.is_settled else [connector.wake()]
        serving = connector.serving
        if serving is not None:
            times += [inbox.wake(), self._publications.wake()]
            if not connector.entering:
                times.append(self._subscriptions.wake())
            if inbox.deaf and self._wants_renewal(serving):
                times.append(self._renew_at)
        return min([time for time in times if time is not None], default=None)

    def _act(self, now: float, event: events.Event) -> list[Action]:
        match event:
            case events.Received(connection, text):
                return self._received(now, connection, text)
            case events.Taken(subscription, execution, epoch):
                self._inbox.take(now, subscription, execution, epoch)
            case events.Publish(ref, feed, records):
                return self._publications.publish(now, ref, feed, list(records))
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
                return self._connector.start(now)
            case events.Stop():
                return [*self._send([*self._inbox.flush(), Logout()]), *self._connector.stop()]
            case events.BrokerFound(url):
                return self._connector.found(now, url)
            case events.CoordinatorFailed(reason):
                return self._connector.unfound(now, reason)
            case events.Opened(connection):
                return self._login(connection) if self._connector.opened(connection) else []
            case events.Lost(connection, code):
                return self._connector.lost(now, connection, code)
        return []

    def _login(self, connection: int) -> list[Action]:
        login = Login(self._token, VERSION, self._inbox.enter(connection))
        return [Send(connection, encode(login)), *self._connector.entered()]

    def _received(self, now: float, connection: int, text: str | bytes) -> list[Action]:
        if not self._connector.knows(connection):
            return []
        try:
            return self._answered(now, connection, decode(text))
        except InvalidError as error:
            return [Troubled("unreadable", str(error)), *self._connector.drop(now, connection)]

    def _answered(self, now: float, connection: int, answer: Answer) -> list[Action]:
        """Raises InvalidError when the broker should not have sent this now."""
        if isinstance(answer, Error):
            return self._failed(now, answer)
        if isinstance(answer, Welcome) is not self._connector.awaits_welcome(connection):
            raise InvalidError(f"the broker sent {type(answer).__name__} out of turn")
        match answer:
            case Notes(notes):
                return [*self._inbox.receive(connection, notes)]
            case Published(id, _, refused):
                return self._publications.published(id, refused)
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
                return self._connector.move(now, url)
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
        away = self._connector.serving is None
        actions = self._connector.welcomed(now, connection)
        actions += self._subscriptions.welcomed(held)
        for each in held:
            self._inbox.told(connection, each, welcome.histories.get(each.channel, []))
        self._inbox.welcomed(now, held, welcome.newest if away else {})
        self._publications.again()
        return actions

    def _failed(self, now: float, error: Error) -> list[Action]:
        for part in (self._subscriptions, self._publications):
            actions = part.failed(now, error)
            if actions is not None:
                return actions
        return [Troubled(error.code, error.message)]

    def _wants_renewal(self, serving: int) -> bool:
        return self._connector.state is ConnectionState.SERVING and self._inbox.thirsty(serving)

    def _renewal(self, now: float) -> list[Action]:
        serving = self._connector.serving
        if serving is None or now < self._renew_at or not self._wants_renewal(serving):
            return []
        self._renew_at = now + self._rules.renew_seconds
        return self._connector.renew(now)

    def _due(self, now: float) -> list[Request]:
        if self._connector.serving is None:
            return []
        asked = [] if self._connector.entering else self._subscriptions.due(now)
        return [*asked, *self._inbox.due(now), *self._publications.due(now)]

    def _send(self, requests: Sequence[Request]) -> list[Action]:
        serving = self._connector.serving if requests else None
        return [Send(serving, encode(request)) for request in requests] if serving is not None else []
