"""Service times of brokers' machines: what waits, for how long, and what is measured of it."""

from __future__ import annotations

from tocsin.overlay.tuning import Tuning
from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.network import Conditions
from tocsin.simulate.overlay.invariants import violations
from tocsin.simulate.overlay.service import BrokerService, ServiceTimes
from tocsin.simulate.overlay.system import OverlaySystem

TIMES = ServiceTimes(0.1, 1000.0, 1e6, first_bytes=1e5, subscription_bytes=1e3, message_bytes=10.0)


class Served:
    """A machine, and what has been matched when."""

    def __init__(self, subscriptions: int = 5) -> None:
        self.clock = VirtualClock(0.0)
        self.subscriptions = subscriptions
        self.matched: list[tuple[float, str]] = []
        self.service = BrokerService(
            self.clock, TIMES, lambda: self.subscriptions, lambda item: self.matched.append((self.clock.now, item))
        )


def test_publications_are_matched_one_after_the_other_for_as_long_as_there_are_subscriptions() -> None:
    served = Served(subscriptions=5)
    for item in ("a", "b"):
        served.service.take(item)
    served.service.take("mark", instant=True)
    served.clock.run(0.6)
    # The delay is that of the moment at which matching begins.
    served.subscriptions = 0
    served.service.take("c")
    served.clock.run(10.0)
    assert served.matched == [(0.5, "a"), (1.0, "b"), (1.0, "mark"), (1.1, "c")]


def test_a_gauge_tells_what_waits_and_how_busy_the_machine_was() -> None:
    served = Served(subscriptions=5)
    served.clock.run(1.0)
    assert served.service.gauge().cpu == 0.0
    for item in range(4):
        served.service.take(str(item))
    served.clock.run(1.25)
    sent = served.service.send(3000.0)
    gauge = served.service.gauge()
    assert (gauge.matching_seconds, gauge.arrived, gauge.cpu) == (0.5, 4, 1.0)
    assert gauge.input_seconds == 0.25 + 3 * 0.5
    assert (sent, gauge.output_seconds) == (4.25, 3.0)
    assert gauge.memory == 1e5 + 5 * 1e3 + 4 * 10 + 3000
    served.clock.run(5.25)
    idle = served.service.gauge()
    assert (idle.arrived, idle.input_seconds, idle.output_seconds) == (0, 0.0, 0.0)
    assert abs(idle.cpu - 1.75 / 4) < 1e-9


def test_a_crowded_edge_with_service_times_sheds_load_and_nobody_loses_anything() -> None:
    weak, strong = ServiceTimes(0.01, 1e6, 1e9), ServiceTimes(0.0005, 1e7, 1e9)
    system = OverlaySystem(
        {"h": None},
        {"a": "h", "b": "h"},
        1,
        conditions=Conditions(latency=0.002, spread=0.0),
        store_seconds=0.0,
        tuning=Tuning(),
        times={"a": weak, "b": strong, "h": strong},
    )
    system.start_publisher("p", "h")
    for number in range(30):
        system.subscribe(f"s{number}", f"n >= {number % 10}", ["a"])

    def publish(number: int) -> None:
        if number < 1500:
            system.publish("p", n=number % 10)
            system.clock.after(0.2, publish, number + 1)

    publish(0)
    system.advance(60.0)
    waiting = system.edges["a"].service
    assert waiting is not None
    system.advance(340.0)
    assert waiting.waiting == 0
    assert 0 < len(system.edges["a"].core.subscriptions) < 30
    assert [text for text in violations(system) if "lost" in text or "twice" in text or " is on " in text] == []
