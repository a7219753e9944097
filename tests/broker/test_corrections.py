"""What the coordinator has under an old number, while the subscriber asks for it or gives it up."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, told
from tocsin.broker import events
from tocsin.broker.limits import BrokerLimits
from tocsin.model.control import Dropped
from tocsin.model.coordination import Keep, Kept, Prepare, Refused
from tocsin.model.subscriber import Held, Subscribe, Unsubscribe


@pytest.fixture
def bench() -> Bench:
    """A broker with one subscriber, whose subscription has another number since all data were lost.

    The coordinator is away, and has it under the old number.
    """
    bench = Bench()
    bench.cluster.absent.add("c")
    bench.cluster.create("c")
    bench.connect()
    bench.serve("p", 1, was(bench))
    bench.execute()
    bench.do(events.Lost("coordinator"))
    bench.do(events.Lost("data"))
    bench.cluster.lose()
    bench.cluster.create("c")
    bench.answer_data(bench.do(events.Connected("data")))
    return bench


def was(bench: Bench) -> Held:
    """The subscription as the coordinator has it."""
    return Held(1, "c", {"v": 1}, 0, False, bench.cluster.incarnation("c"))


def now(bench: Bench) -> list[int]:
    """The numbers of what the subscriber holds."""
    return list(bench.core.holdings.stays["p"].subscriptions)


def keeps(bench: Bench) -> list[tuple[int, bool, tuple[int, ...]]]:
    """What the coordinator was told last: numbers, whether given up, and the other numbers."""
    return [(keep.held.subscription, keep.gone, keep.was) for keep in told(bench.did, Keep)]


def test_what_could_not_be_confirmed_in_time_is_not_forgotten(bench: Bench) -> None:
    before = was(bench)
    bench.answer_data(bench.say(1, Subscribe(1, "c", {"v": 1}, incarnation=before.incarnation)))
    bench.wait(11)
    bench.do(events.Connected("coordinator"))
    assert keeps(bench) == [(2, False, (1,))]
    bench.answer_data(bench.tell(Prepare("p", 1, [before])))
    assert now(bench) == [2]


def test_what_is_confirmed_in_time_takes_the_place_of_the_old_number(bench: Bench) -> None:
    bench.answer_data(bench.say(1, Subscribe(1, "c", {"v": 1})))
    bench.do(events.Connected("coordinator"))
    assert keeps(bench) == [(2, False, (1,)), (2, False, (1,))]
    bench.tell(Kept(1))
    bench.do(events.Lost("coordinator"))
    assert told(bench.do(events.Connected("coordinator")), Keep) == []


def test_what_could_not_be_given_up_in_time_is_not_forgotten(bench: Bench) -> None:
    bench.say(1, Unsubscribe(1, 2))
    bench.wait(11)
    bench.do(events.Connected("coordinator"))
    assert keeps(bench) == [(2, False, (1,))]


def test_what_is_given_up_is_given_up_under_its_old_number_too(bench: Bench) -> None:
    bench.say(1, Unsubscribe(1, 2))
    bench.do(events.Connected("coordinator"))
    assert keeps(bench) == [(2, False, (1,)), (2, True, (1,))]
    bench.tell(Kept(1))
    assert now(bench) == []
    bench.do(events.Lost("coordinator"))
    assert told(bench.do(events.Connected("coordinator")), Keep) == []


def test_what_was_given_up_under_its_old_number_is_given_up_under_the_new_one_too(bench: Bench) -> None:
    bench.do(events.Lost("data"))
    bench.say(1, Unsubscribe(1, 2))
    bench.cluster.lose()
    bench.cluster.create("c")
    bench.answer_data(bench.do(events.Connected("data")))
    bench.do(events.Connected("coordinator"))
    assert keeps(bench) == [(3, False, (1, 2)), (2, True, (1, 3))]
    bench.tell(Kept(1))
    assert now(bench) == []


def test_a_correction_refused_as_busy_does_not_undo_what_came_after_it(bench: Bench) -> None:
    bench.do(events.Connected("coordinator"))
    [keep] = told(bench.did, Keep)
    bench.tell(Refused("busy", "too much waits", {"ref": keep.ref}))
    bench.say(1, Unsubscribe(1, 2))
    bench.tell(Kept(1))
    assert told(bench.wait(5), Keep) == []


def test_what_the_coordinator_says_while_it_is_given_up_does_not_bring_it_back(bench: Bench) -> None:
    bench.do(events.Connected("coordinator"))
    [correction] = told(bench.did, Keep)
    bench.tell(Kept(correction.ref))
    bench.say(1, Unsubscribe(1, 2))
    assert keeps(bench) == [(2, True, ())]
    bench.tell(Prepare("p", 1, [was(bench)]))
    assert keeps(bench) == [(2, False, (1,))]
    bench.tell(Kept(1))
    assert keeps(bench) == [(1, True, (2, 1))]
    assert now(bench) == []


@pytest.fixture
def ended() -> Bench:
    """A broker whose subscriber was told that its channel is gone; the coordinator was away, and all data are lost."""
    bench = Bench()
    bench.cluster.absent.add("c")
    bench.cluster.create("c")
    bench.connect()
    bench.serve("p", 1, was(bench))
    bench.do(events.Lost("coordinator"))
    bench.tell(Dropped("c", bench.cluster.incarnation("c")))
    assert now(bench) == []
    bench.cluster.lose()
    bench.cluster.create("c")
    bench.do(events.Connected("coordinator"))
    assert keeps(bench) == [(1, True, (1,))]
    return bench


def test_what_has_ended_ends_also_if_another_broker_had_it_stored_under_a_new_number(ended: Bench) -> None:
    elsewhere = Held(2, "C", {"v": 1}, 0, False, ended.cluster.incarnation("c"))
    ended.tell(Prepare("p", 1, [elsewhere]))
    assert keeps(ended) == [(2, True, (2,))]
    assert now(ended) == []


def test_what_has_ended_and_is_subscribed_to_again_stays(ended: Bench) -> None:
    ended.answer_data(ended.say(1, Subscribe(1, "c", {"v": 1})))
    again = Held(2, "c", {"v": 1}, 0, False, ended.cluster.incarnation("c"))
    ended.answer_data(ended.tell(Prepare("p", 1, [again])))
    ended.tell(Kept(1))
    assert now(ended) == [2]
    ended.answer_data(ended.tell(Prepare("p", 1, [again])))
    assert now(ended) == [2]


def test_what_is_given_up_while_the_coordinator_speaks_of_it_does_not_come_back_under_another_number() -> None:
    bench = Bench(BrokerLimits(linger_seconds=0.1))
    bench.cluster.absent.add("c")
    bench.cluster.create("c")
    bench.connect()
    bench.serve("p", 1, was(bench))
    before = was(bench)
    bench.do(events.Lost("data"))
    bench.cluster.lose()
    bench.answer_data(bench.do(events.Connected("data")))
    bench.tell(Prepare("p", 1, [before]))
    bench.say(1, Unsubscribe(1, 1))
    bench.tell(Kept(1))
    bench.wait(1)
    bench.do(events.Lost("data"))
    bench.cluster.create("c")
    bench.answer_data(bench.do(events.Connected("data")))
    assert now(bench) == []
