"""Whatever happens to brokers and connections, the application gets what it is subscribed to, once and in order."""

from __future__ import annotations

from collections import deque
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.network import CHANNELS, Link, Network
from tests.examples import examples
from tocsin.client.core import actions, events
from tocsin.client.core.core import SubscriberCore
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Acknowledge, Login, Request

STEPS = 400


class Stream:
    """What the application got of a subscription since it had it."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.got: list[int] = []
        self.waiting: deque[int] = deque()
        self.taken = start


class Play:
    """A core with its application, in the model network, on a random schedule.

    It checks with each delivery that the note is the next of a subscription that is held, and with each cursor a
    broker is told that the application has taken so much.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.network = Network(self.random)
        self.harshness = self.random.choice([0.02, 0.1, 0.3])
        backlog = self.random.choice([2, 5, 1000])
        self.core = SubscriberCore(
            Random(seed), Rules(backlog_notes=backlog, ack_notes=5, login_seconds=3.0, longest_wait=2.0)
        )
        self.now = 0.0
        self.refs = 0
        self.questions = 0
        self.calls: dict[int, str] = {}
        self.confirmed: set[int] = set()
        self.streams: dict[int, Stream] = {}

    def do(self, event: events.Event) -> None:
        for action in self.core.handle(self.now, event):
            self.carry_out(action)

    def carry_out(self, action: actions.Action) -> None:
        match action:
            case actions.AskBroker():
                self.questions += 1
            case actions.Open(number, url):
                self.network.links[number] = Link(url)
            case actions.Close(number):
                if number in self.network.links:
                    self.network.links[number].closing = True
            case actions.Send(number, text):
                self.check_cursors(text)
                if number in self.network.links:
                    self.network.links[number].upward.append(text)
            case actions.Failed():
                raise AssertionError(action)
            case _:
                self.tell(action)

    def tell(self, action: actions.Action) -> None:
        """What the application is told."""
        match action:
            case actions.Confirmed(ref, held):
                assert ref in self.calls
                self.confirmed.add(ref)
                self.open(held.subscription, held.cursor)
            case actions.Resumed(held):
                self.open(held.subscription, held.cursor)
            case actions.Ended(subscription):
                del self.streams[subscription]
            case actions.Deliver(subscription, note):
                stream = self.streams[subscription]
                assert note.e == self.expected(subscription)[len(stream.got)]
                stream.got.append(note.e)
                stream.waiting.append(note.e)

    def open(self, number: int, cursor: int) -> None:
        if number not in self.streams:
            found = self.network.results[number]
            assert cursor <= self.network.created.get(number, found[-1] if found else 0)
            self.streams[number] = Stream(cursor)

    def expected(self, number: int) -> list[int]:
        return [found for found in self.network.results[number] if found > self.streams[number].start]

    def check_cursors(self, text: bytes) -> None:
        request: Request = msgspec.json.decode(text, type=Request)
        if isinstance(request, Login | Acknowledge):
            for number, cursor in request.cursors.items():
                assert cursor == self.streams[number].taken

    def take(self) -> None:
        for number, stream in self.streams.items():
            if stream.waiting and self.random.random() < 0.7:
                stream.taken = stream.waiting.popleft()
                self.do(events.Taken(number, stream.taken))

    def call(self) -> None:
        """The application subscribes to something, or gives something up."""
        if self.calls and self.random.random() < 0.4:
            ref = self.random.choice(list(self.calls))
            number = CHANNELS[self.calls.pop(ref)]
            self.do(events.Unsubscribe(ref))
            assert ref not in self.confirmed or number not in self.streams
        elif unwanted := [channel for channel in CHANNELS if channel not in self.calls.values()]:
            self.refs += 1
            self.calls[self.refs] = self.random.choice(unwanted)
            self.do(events.Subscribe(self.refs, self.calls[self.refs]))

    def answer(self) -> None:
        """The coordinator answers, or does not."""
        if self.questions:
            self.questions -= 1
            failing = self.network.chance(0.3)
            self.do(events.CoordinatorFailed() if failing else events.BrokerFound(self.network.place))

    def step(self) -> None:
        """Time passes and something happens."""
        self.now += self.random.expovariate(20.0)
        wake = self.core.wake()
        if wake is not None and wake <= self.now:
            self.do(events.Tick())
        self.answer()
        self.take()
        if self.network.links:
            event = self.network.step(self.random.choice(list(self.network.links)))
            if event is not None:
                self.do(event)

    def trouble(self) -> None:
        network = self.network
        if self.random.random() < 0.2:
            network.execute()
        if self.random.random() < self.harshness:
            self.random.choice([network.prepare, network.cut, network.crash, self.call, self.call])()

    def settle(self) -> None:
        """Nothing goes wrong any more, and enough time passes."""
        self.network.troubled = False
        for _ in range(3000):
            if self.complete():
                return
            self.step()
            if not self.network.links and not self.questions:
                self.now = max(self.now, self.core.wake() or self.now)
        raise AssertionError("something never came")

    def complete(self) -> bool:
        return set(self.calls) <= self.confirmed and all(
            self.streams[number].got == self.expected(number)
            for number in (CHANNELS[channel] for channel in self.calls.values())
        )


@settings(max_examples=examples(120), deadline=None)
@given(st.integers(0, 2**32))
def test_the_application_gets_every_note_once_and_in_order(seed: int) -> None:
    play = Play(seed)
    play.do(events.Start("token"))
    for _ in range(STEPS):
        play.trouble()
        play.step()
    play.settle()
    assert {CHANNELS[channel] for channel in play.calls.values()} <= set(play.network.held)
