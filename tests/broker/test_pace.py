"""How fast a subscriber may speak, on however many connections one after the other, and who else notices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.broker.world import Bench, closed, notes, sent
from tocsin.broker import actions, events
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.pace import SubscriberPace
from tocsin.model import subscriber
from tocsin.model.subscriber import Code, Held

ACK = b'{"type":"ack","cursors":{}}'


def bench(**limits: float) -> Bench:
    bench = Bench(BrokerLimits(**limits))  # type: ignore[arg-type]
    bench.connect()
    bench.serve("ann", 1, bench.held())
    bench.serve("bob", 2, bench.held())
    return bench


def read_later(did: list[actions.Action]) -> list[tuple[int, float]]:
    return [(one.session, one.seconds) for one in did if isinstance(one, actions.ReadLater)]


def test_a_new_connection_brings_no_more_messages_than_were_left() -> None:
    world = bench(message_burst=4.0, messages_per_second=1.0)
    world.do(events.Received(1, ACK))
    world.do(events.Closed(1))
    assert not closed(world.login("ann", 3))
    assert not closed(world.do(events.Received(3, ACK)))
    assert closed(world.do(events.Received(3, ACK))) == [(3, Code.FLOOD)]
    assert notes(world.execute(), 2) == [(1, 1)]


def test_whoever_logs_in_again_and_again_is_refused_until_time_has_passed() -> None:
    world = bench(message_burst=2.0, messages_per_second=1.0)
    assert closed(world.login("ann", 3)) == [(1, Code.REPLACED)]
    did = world.login("ann", 4)
    assert closed(did) == [(4, Code.FLOOD)]
    assert [each.code for each in sent(did, 4) if isinstance(each, subscriber.Error)] == ["flood"]
    # Who is there already stays.
    assert notes(world.execute(), 3) == [(1, 1)]
    world.wait(2.0)
    assert closed(world.login("ann", 5)) == [(3, Code.REPLACED)]


def test_a_welcome_in_many_parts_counts_for_as_many_messages() -> None:
    world = Bench(BrokerLimits(message_burst=4.0, messages_per_second=1.0))
    world.connect()
    large = [{"v": str(number) * 100_000} for number in range(8)]
    world.serve("ann", 1, *(Held(world.cluster.be("c", each), "c", each, 0) for each in large))
    assert closed(world.do(events.Received(1, ACK))) == [(1, Code.FLOOD)]


def test_whoever_says_too_much_is_read_later_and_nobody_else_is() -> None:
    world = bench(bytes_per_second=1000.0)
    did = world.do(events.Received(1, ACK.ljust(4000)))
    [(session, seconds)] = read_later(did)
    assert session == 1
    assert 2.0 < seconds < 2.2
    assert not closed(did)
    assert not read_later(world.do(events.Received(2, ACK)))
    world.wait(seconds + 1.0)
    assert not read_later(world.do(events.Received(1, ACK)))


def test_a_new_connection_brings_no_more_bytes_than_were_left() -> None:
    world = bench(bytes_per_second=1000.0)
    world.do(events.Received(1, ACK.ljust(1900)))
    world.do(events.Closed(1))
    assert [session for session, _ in read_later(world.login("ann", 3))] == [3]


@given(st.lists(st.integers(1, 5000), max_size=30), st.lists(st.floats(0.0, 5.0), min_size=30, max_size=30))
def test_whoever_waits_as_told_never_says_more_than_is_allowed(sizes: list[int], pauses: list[float]) -> None:
    limits = BrokerLimits(bytes_per_second=1000.0)
    now, said, pace = 0.0, 0, SubscriberPace(limits, 0.0)
    for size, pause in zip(sizes, pauses, strict=False):
        now += pause
        said += size
        now += pace.wait(now, size)
        assert said <= 1000.0 * (now + 2.0) + 1e-6
