"""A core of the overlay by itself, as an edge or a head, and what is said to it."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.overlay import events
from tocsin.overlay.actions import SendClient, SendLink
from tocsin.overlay.dialogue import Subscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.load import BrokerLoad, Metrics
from tocsin.overlay.messages import (
    HEADS,
    ClusterLoad,
    Control,
    Found,
    LocalLoad,
    Routed,
    SessionAccept,
    SessionRequest,
    Sync,
)

BUSY_EDGE = Metrics(0.6, 0.6, 0.06)
IDLE_EDGE = Metrics(0.1, 0.1, 0.01)
FOUR = ["m7", "m8", "m9", "m10"]


def local(
    broker: str,
    metrics: Metrics = IDLE_EDGE,
    state: str = "OK",
    cluster: str = "h",
    cpu: float = 0.0,
    memory: float = 0.0,
    balanced: Sequence[str] = (),
) -> Control:
    load = LocalLoad(broker, cluster, metrics, state, list(balanced), cpu=cpu, memory=memory)
    return Control({"load": cluster}, broker, load)


class Bench:
    """A core by itself, with what it sends to brokers and to clients."""

    def __init__(self, core: Head | Edge) -> None:
        self.core, self.now, self.published = core, 0.0, 0
        self.links: list[SendLink] = []
        self.clients: list[SendClient] = []

    def tell(self, event: events.Event) -> None:
        for action in self.core.handle(self.now, event):
            if isinstance(action, SendLink):
                self.links.append(action)
            elif isinstance(action, SendClient):
                self.clients.append(action)

    def hear(self, link: str, message: Control | Sync | ClusterLoad | Routed) -> None:
        self.tell(events.LinkSaid(link, message))

    def wait(self, seconds: float) -> None:
        """Lets time pass, in steps in which the core is woken."""
        until = self.now + seconds
        while (wake := self.core.wake()) is not None and wake <= until:
            self.now = max(self.now, wake)
            self.tell(events.Tick())
        self.now = until

    def bodies(self, kind: type) -> list[object]:
        sent = [action.message for action in self.links]
        return [each.body for each in sent if isinstance(each, Control) and isinstance(each.body, kind)]


def edge(subscribers: int = 4) -> Bench:
    """An edge e of the cluster h, loaded by its subscribers; f is another edge, in its control interests."""
    bench = Bench(Edge("e", "h", "e.1"))
    bench.tell(events.LinkOpened("h", is_head=True))
    bench.hear("h", Sync([], [f"to = '{HEADS}'", "load = 'h'", "to = 'f'", "to = 'g'"]))
    for number in range(subscribers):
        bench.tell(events.ClientSaid(number, Subscribe(f"s{number}", f"n >= {number}")))
    fetch = bench.links[-1].message
    assert isinstance(fetch, Control)
    for held in bench.core.subscriptions.all if isinstance(bench.core, Edge) else []:
        bench.hear("h", Control({"to": "e"}, "h", Found(held.fetch, "h", "h.1", {}, 1, 0, 0, [])))
    bench.tell(events.Gauged(0.03, 1_000_000.0))
    return bench


def publish(bench: Bench, count: int, seconds: float) -> None:
    """Publications for everybody, evenly."""
    for _ in range(count):
        bench.published += 1
        bench.now += seconds / count
        bench.hear("h", Routed("h", bench.published, "p", bench.published, {"n": 9.0}))


def head(edges: list[str], others: list[str]) -> Bench:
    bench = Bench(Head("h", "h.1"))
    for name in edges:
        bench.tell(events.LinkOpened(name, is_head=False))
    for name in others:
        bench.tell(events.LinkOpened(name, is_head=True))
        bench.hear(name, Sync([], [f"to = '{HEADS}'", f"to = '{name}'"]))
    return bench


def offloading() -> tuple[Bench, str]:
    """An edge whose request f has accepted."""
    bench = edge()
    publish(bench, 200, 10.0)
    bench.hear("h", local("f"))
    bench.wait(5.0)
    request = bench.bodies(SessionRequest)[-1]
    assert isinstance(request, SessionRequest)
    accept = SessionAccept(request.id, BrokerLoad(0.0, 0.001, 0.0, 1e6, 0), [])
    bench.hear("h", Control({"to": "e"}, "f", accept))
    return bench, request.id


def accepting() -> Bench:
    """An edge that has accepted a request of f."""
    bench = edge(1)
    bench.hear("h", Control({"to": "e"}, "f", SessionRequest("x")))
    return bench


def come(bench: Bench, number: int) -> None:
    """A subscriber that migrates comes, and is served."""
    bench.tell(events.ClientSaid(number, Subscribe(f"m{number}", "n > 5", {}, "x", 2)))
    held = bench.core.subscriptions.get(f"m{number}") if isinstance(bench.core, Edge) else None
    assert held
    bench.hear("h", Control({"to": "e"}, "h", Found(held.fetch, "h", "h.1", {}, 1, 0, 0, [])))
