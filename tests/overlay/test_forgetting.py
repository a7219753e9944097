"""Which publishers a head remembers, and how it forgets them."""

from __future__ import annotations

import pytest

from tocsin.overlay.actions import Action, AppendLog, ForgetPublishers, SendClient
from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored
from tocsin.overlay.events import ClientLost, ClientSaid, Event, LogStored, RowFound, Tick
from tocsin.overlay.head import Head
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import Routed
from tocsin.overlay.replay import KeptLog

HOUR = 3600.0
LIMITS = OverlayLimits(replay_publications=5, publisher_seconds=HOUR, publishers=1000, publishers_each=10)


class Bench:
    """A head whose disk stores at once, and keeps what it is told to keep."""

    def __init__(self, kept: KeptLog | None = None, limits: OverlayLimits = LIMITS, now: float = 1000.0) -> None:
        self.kept, self.now = kept or KeptLog(), now
        self.kept.begin(f"h.{len(self.kept.history) + 1}")
        self.head = Head("h", self.kept.history[-1].incarnation, self.kept, limits)
        self.told: list[SendClient] = []
        self.forgotten: list[str] = []

    def tell(self, event: Event) -> None:
        for action in self.head.handle(self.now, event):
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case AppendLog(publication):
                self.kept.sequences[publication.publisher] = publication.sequence
                self.kept.publications = [*self.kept.publications, publication][-5:]
                self.kept.last = publication.offset
                self.tell(LogStored(publication.offset))
            case ForgetPublishers(names, floor):
                self.forgotten += names
                self.kept.floor = floor
                for name in names:
                    self.kept.sequences.pop(name, None)
            case SendClient():
                self.told.append(action)

    def come(self, client: int, publisher: str, incarnation: str = "") -> Known:
        self.tell(ClientSaid(client, Introduce(publisher, incarnation)))
        known = self.told[-1].message
        assert isinstance(known, Known)
        return known

    def run(self, client: int, publisher: str, *, publish: int = 1) -> None:
        """A program that publishes something, and ends."""
        number = self.come(client, publisher).sequence
        for each in range(1, publish + 1):
            self.tell(ClientSaid(client, Publish(number + each, {"n": 1.0})))
        self.tell(ClientLost(client))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.tell(Tick())


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_names_that_are_used_once_are_not_kept_for_ever(bench: Bench) -> None:
    for number in range(2000):
        bench.run(number, f"ticker+{number:x}")
        bench.wait(HOUR / 4)
    assert bench.head.log.publishers_of("ticker") == bench.head.log.publishers <= 10
    assert len(bench.kept.sequences) <= 10
    assert bench.forgotten == [f"ticker+{number:x}" for number in range(len(bench.forgotten))]


def test_whoever_comes_back_within_the_time_publishes_nothing_twice(bench: Bench) -> None:
    first = bench.come(1, "p")
    for number in (1, 2):
        bench.tell(ClientSaid(1, Publish(number, {"n": 1.0})))
    bench.tell(ClientLost(1))
    for number in range(10):
        bench.run(2 + number, "other")
    bench.wait(HOUR - 1)
    # It has not heard that number 2 is stored.
    assert bench.come(50, "p", first.incarnation) == Known(2, "h.1", continued=True)
    bench.tell(ClientSaid(50, Publish(2, {"n": 1.0})))
    assert bench.told[-1].message == Stored(2)
    assert bench.head.log.last == 12


def test_whoever_has_something_in_the_log_is_known_for_longer(bench: Bench) -> None:
    first = bench.come(1, "p")
    bench.tell(ClientSaid(1, Publish(1, {"n": 1.0})))
    bench.tell(ClientLost(1))
    bench.wait(10 * HOUR)
    assert bench.come(2, "p", first.incarnation) == Known(1, "h.1", continued=True)


def test_but_not_so_many_of_one_owner_that_it_could_have_no_more(bench: Bench) -> None:
    for number in range(8):
        bench.run(number, f"ticker+{number}", publish=0 if number else 1)
    for number in range(8):
        bench.run(number, f"ann+{number}")
    bench.wait(HOUR + 60)
    # Of those in the log, too, as many as are beyond half of what an owner may have.
    assert bench.head.log.publishers_of("ann") == 5
    assert set(bench.forgotten) == {"ticker+0", "ann+0", "ann+1", "ann+2"}


def test_whoever_is_connected_or_waits_for_the_disk_is_not_forgotten(bench: Bench) -> None:
    bench.run(1, "gone", publish=1)
    bench.come(2, "here")
    bench.tell(ClientSaid(2, Publish(1, {"n": 1.0})))
    for number in range(10):
        bench.run(10 + number, "other")
    bench.wait(5 * HOUR)
    assert bench.forgotten == ["gone"]
    assert [bench.head.log.knows(name) for name in ("here", "gone")] == [True, False]
    waiting = Bench(limits=LIMITS)
    waiting.head.handle(0.0, ClientSaid(1, Introduce("slow")))
    assert isinstance(waiting.head.handle(0.0, ClientSaid(1, Publish(1, {"n": 1.0})))[0], AppendLog)
    waiting.head.handle(0.0, ClientLost(1))
    assert waiting.head.handle(10 * HOUR, Tick()) == []
    assert waiting.head.log.knows("slow")


def test_a_number_that_was_given_is_never_given_again(bench: Bench) -> None:
    first = bench.come(1, "p")
    for number in range(1, 8):
        bench.tell(ClientSaid(1, Publish(number, {"n": 1.0})))
    bench.tell(ClientLost(1))
    bench.run(2, "other", publish=5)
    bench.wait(HOUR + 60)
    assert bench.forgotten == ["p"]
    # It numbers anew what it has waiting, as when the log is another: its numbers count for nothing here.
    assert bench.come(3, "p", first.incarnation) == Known(7, "h.1", continued=False)
    assert bench.come(4, "new") == Known(7, "h.1")


def test_a_number_that_a_newcomer_was_told_stays_its_own_whoever_is_forgotten_meanwhile(bench: Bench) -> None:
    bench.run(1, "p", publish=7)
    bench.run(2, "other", publish=5)
    assert bench.come(3, "new") == Known(0, "h.1")
    bench.wait(HOUR + 60)
    assert bench.forgotten == ["p"]
    bench.tell(ClientSaid(3, Publish(1, {"n": 1.0})))
    assert bench.told[-1].message == Stored(1)
    assert bench.head.log.last == 13


def test_whoever_comes_and_publishes_nothing_leaves_nothing_behind(bench: Bench) -> None:
    for number in range(100):
        bench.come(number, f"client-{number}")
        bench.tell(ClientLost(number))
    assert bench.head.log.publishers == 0


def test_a_head_that_starts_again_goes_on_forgetting_and_does_not_count_the_time_in_between(bench: Bench) -> None:
    bench.run(1, "early", publish=1)
    bench.wait(HOUR / 2)
    for number in range(6):
        bench.run(10 + number, "late")
    kept = bench.kept
    kept.seen = {"early": 0.0, "late": HOUR / 2}
    again = Bench(kept, now=10**9)
    again.wait(0.0)
    again.wait(HOUR / 2 - 60)
    assert again.forgotten == []
    again.wait(120)
    assert again.forgotten == ["early"]
    assert again.come(1, "fresh").sequence == again.kept.floor == 1


def test_the_numbers_of_rows_are_not_forgotten(bench: Bench) -> None:
    bench.tell(RowFound("channel/quakes/1", 2**20, {"n": 1.0}))
    for number in range(10):
        bench.run(number, "other")
    bench.wait(100 * HOUR)
    assert bench.head.log.knows("channel/quakes/1")


def test_whoever_leaves_out_numbers_for_others_to_have_none_is_not_forgotten() -> None:
    kept = KeptLog([Routed("h", 1, "greedy", 2**53, {"n": 1.0})], 1, {"greedy": 2**53})
    bench = Bench(kept)
    for number in range(10):
        bench.run(number, "other")
    bench.wait(100 * HOUR)
    assert bench.head.log.knows("greedy")
    assert bench.come(50, "new") == Known(0, "h.1")


def test_a_head_without_publishers_has_nothing_to_wake_up_for(bench: Bench) -> None:
    bench.run(1, "p", publish=1)
    bench.run(2, "other", publish=5)
    for _ in range(10):
        bench.wait(HOUR)
    assert bench.forgotten == ["p"]
    assert Head("h", "h.1").wake() is None
    assert (bench.head.wake() or 0.0) > bench.now
