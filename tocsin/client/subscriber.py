"""A program's connection to channels: the :class:`Subscriber`, and the :func:`connect` that makes one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from tocsin.client.coordinator import CoordinatorClient, Location
from tocsin.client.core import actions
from tocsin.client.core.events import Event
from tocsin.client.driver import ClientEnvironment, Coordinator, SubscriberDriver
from tocsin.client.faults import ClosedError, fault
from tocsin.client.notices import ConnectionNotices, Notice
from tocsin.client.publisher import Publisher, Record
from tocsin.client.rules import Rules
from tocsin.client.subscription import Acknowledge, OnGap, Subscription
from tocsin.client.subscriptions import OpenSubscriptions
from tocsin.errors import InvalidError, UnauthorizedError
from tocsin.model.messages import Published

_UNREGISTERED: Final = ClosedError("unregistered: whoever is to come back must register again")


def connect(
    coordinator: str, token: str, *, location: Location | None = None, rules: Rules | None = None, ca: str = ""
) -> Subscriber:
    """A subscriber, connected while in its ``async with``::

        async with tocsin.connect("http://localhost:8700", token) as me:
            floods = await me.subscribe("EmergenciesOfType", event="flood")
            async for note in floods:
                print(note.rows)

    ``coordinator`` is the coordinator's URL and ``token`` what it gave when the subscriber was registered
    (:func:`tocsin.client.register`). ``location`` is where the subscriber is, for coordinators that choose a near
    broker. ``rules`` says how patient and how large the connection is. ``ca`` is the file of a private authority's
    certificates, trusted beside the system's.
    """
    if not token:
        raise InvalidError(
            "connect needs a token; tocsin.client.register gives one. Only an overlay needs none: its edges and heads "
            "are named by ws:// URLs"
        )
    rules = rules or Rules()
    return Subscriber(CoordinatorClient(coordinator, rules.ask_seconds, ca), token, location, rules)


class Subscriber:
    """One subscriber's connection to the network of brokers, made by :func:`connect`.

    Entering waits until a broker serves. From then on lost connections, moves between brokers and their crashes are
    dealt with inside: notes come once and in order, and calls wait until they are answered; ``asyncio.timeout`` around
    a call bounds that. Subscriptions outlive the connection. What is found while nobody is connected comes when the
    next run of the program subscribes to the same.

    What can go wrong, for every call and iteration: the token is not accepted (UnauthorizedError); another program has
    connected as the same subscriber (ReplacedError); it is used outside of its ``async with`` (ClosedError). Entering
    also raises UnavailableError when there is no coordinator.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        token: str,
        location: Location | None,
        rules: Rules,
        environment: ClientEnvironment | None = None,
    ) -> None:
        self._coordinator, self._token = coordinator, token
        self._settings = (location, rules)
        self._environment = environment or ClientEnvironment()
        refs = count(1)
        self._notices = ConnectionNotices()
        self._subscriptions = OpenSubscriptions(self._tell, refs)
        self._publisher = Publisher(self._tell, refs)
        self._driver: SubscriberDriver | None = None
        self._welcomed = asyncio.Event()
        self._error: Exception | None = None
        self._leaving = False
        self._closed = ClosedError("not connected: use it within 'async with tocsin.connect(...) as me'")

    async def __aenter__(self) -> Self:
        if self._driver or self._error:
            raise ClosedError("a connection is entered once; call tocsin.connect again")
        told = (self._act, self._fail)
        self._driver = SubscriberDriver(self._coordinator, self._token, *self._settings, *told, self._environment)
        try:
            self._driver.start()
            await self._welcomed.wait()
        except BaseException:
            await self._close()
            raise
        if self._error:
            await self._close()
            raise self._error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def subscribe(
        self,
        channel: str,
        /,
        *,
        live: bool = False,
        acknowledge: Acknowledge = "auto",
        parameters: Mapping[str, Any] | None = None,
        on_gap: OnGap | None = None,
        **named: Any,
    ) -> Subscription:
        """Subscribes to a channel, with its parameters by name, and gives an iterator of what is found.

        The subscription is kept by the brokers, also while the program does not run, until it is closed. With ``live``,
        what is found meanwhile is skipped. Parameters whose names are no identifiers, or are taken here (``live``,
        ``acknowledge``, ``parameters``, ``on_gap``), go into ``parameters``. Equal calls give iterators of the same
        notes. ``on_gap`` is called, as the iteration comes there, where notes are not kept any more.

        A channel that does not exist raises NotFoundError, and a wrong parameter InvalidError.
        A call that is cancelled may have subscribed: an equal one gets what was found since.
        """
        self._check()
        return await self._subscriptions.subscribe(channel, {**(parameters or {}), **named}, live, acknowledge, on_gap)

    async def publish(self, feed: str, records: Iterable[Record]) -> Published:
        """Publishes records, each a mapping or its JSON text, and says which were refused when the others are on disk.

        Records of several calls, made in tasks, travel together. Whatever is lost on the way is sent again, which is
        safe for records with a primary key. Beyond ``Rules.kept_bytes`` without an answer a call waits for room.
        """
        self._check()
        return await self._publisher.publish(feed, records)

    async def unregister(self) -> None:
        """Leaves for good: all subscriptions end, on every broker, the token is worthless, and this connection closes.

        Whoever registers under the name later is somebody else. If the coordinator cannot be reached, it is an
        UnavailableError and nothing has changed, unless the answer was lost; ask again.
        """
        self._check()
        self._leaving = True
        try:
            await self._coordinator.unregister(self._token)
        except BaseException:
            self._leaving = False
            raise
        self._closed = _UNREGISTERED
        await self._close()

    def events(self) -> AsyncIterator[Notice]:
        """What happens to the connection, beginning with how it stands. Nobody needs to read this."""
        return self._notices.listen()

    def _check(self) -> None:
        if self._error or self._driver is None:
            raise self._error or self._closed

    def _tell(self, event: Event) -> None:
        self._check()
        assert self._driver
        self._driver.handle(event)

    def _fail(self, error: Exception) -> None:
        # A broker may let somebody who leaves go before the coordinator has answered.
        left = self._leaving and isinstance(error, UnauthorizedError)
        self._error = _UNREGISTERED if left else error
        self._end(None if left else error)

    async def _close(self) -> None:
        driver, self._driver = self._driver, None
        if driver:
            await driver.stop()
        self._end(None)
        self._error = self._error or self._closed

    def _end(self, error: Exception | None) -> None:
        self._subscriptions.end(error, self._closed)
        self._publisher.end(error or self._closed)
        self._notices.end(error)
        self._welcomed.set()

    def _act(self, action: actions.Action) -> None:
        match action:
            case actions.Deliver():
                self._subscriptions.deliver(action)
            case actions.Published():
                self._publisher.published(action)
            case actions.Missed():
                self._subscriptions.deliver(action)
                self._notices.missed(action)
            case actions.Confirmed(ref, held):
                self._subscriptions.confirmed(ref, held)
            case actions.Resumed(held):
                self._subscriptions.resumed(held)
            case actions.Ended(number):
                self._subscriptions.ended(number)
            case actions.Unsubscribed(ref):
                self._subscriptions.unsubscribed(ref)
            case actions.RequestRefused(ref, code, message):
                if not self._publisher.refused(ref):
                    self._subscriptions.refused(ref, fault(code, message))
            case _:
                self._notice(action)

    def _notice(self, action: actions.Action) -> None:
        match action:
            case actions.StateChanged(state):
                self._notices.changed(action)
                if state is actions.ConnectionState.SERVING:
                    self._welcomed.set()
            case actions.Slowed():
                self._notices.slowed(action)
            case actions.Troubled():
                self._notices.troubled(action)
