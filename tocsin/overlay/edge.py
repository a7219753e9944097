"""An edge broker: serves subscribers, and asks its head for what they want."""

from __future__ import annotations

from math import inf

import msgspec

from tocsin.content.language import parse
from tocsin.errors import FilterError
from tocsin.overlay import events
from tocsin.overlay.actions import Action, CloseClient
from tocsin.overlay.catchup import note
from tocsin.overlay.dialogue import Refused, Subscribe, Unsubscribe
from tocsin.overlay.gauges import Gauges
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import Links
from tocsin.overlay.mediation import Mediation
from tocsin.overlay.messages import (
    Body,
    Change,
    ClusterLoad,
    ClusterView,
    Control,
    Fetch,
    Found,
    FromLink,
    Interrupted,
    LocalLoad,
    Mark,
    Restored,
    Routed,
    Sync,
)
from tocsin.overlay.post import Post
from tocsin.overlay.subscriptions import Subscriptions
from tocsin.overlay.surroundings import Surroundings
from tocsin.overlay.tuning import Tuning


class Edge:
    """An edge broker without sockets and clock.

    Args:
        name: its own, which no other broker of the overlay has.
        cluster: its head's name.
        incarnation: what it has not been started under before.
        url: where subscribers reach it, if not by its name.

    What can go wrong: its head is lost. Subscribers stay, and get what they missed when there is a way again. The edge
    itself dies: its subscribers come to others, with their cursors. A filter that cannot be read is refused, and ends
    its connection.
    """

    def __init__(
        self,
        name: str,
        cluster: str,
        incarnation: str,
        limits: OverlayLimits | None = None,
        tuning: Tuning | None = None,
        url: str = "",
    ) -> None:
        self.name, limits, tuning = name, limits or OverlayLimits(), tuning or Tuning()
        self._post = Post()
        self._links = Links(name, self._post, limits.linger_seconds, limits.at_once)
        self._subscriptions = Subscriptions(name, incarnation, self._post, self._links, limits)
        self._gauges = Gauges(limits.rate_seconds)
        self._surroundings = Surroundings(
            name, cluster, self._post, self._links, self._subscriptions, self._gauges, tuning, limits, url
        )
        self._mediation = Mediation(
            name,
            incarnation,
            self._post,
            self._links,
            self._subscriptions,
            self._surroundings,
            self._gauges,
            tuning,
            limits,
        )
        self._subscriptions.catch_up.began = self._mediation.served

    @property
    def links(self) -> Links:
        """The link to its head; only to be looked at."""
        return self._links

    @property
    def subscriptions(self) -> Subscriptions:
        """Whom it serves; only to be looked at."""
        return self._subscriptions

    @property
    def surroundings(self) -> Surroundings:
        """Its load and its neighbours'; only to be looked at."""
        return self._surroundings

    @property
    def mediation(self) -> Mediation:
        """Its sessions; only to be looked at."""
        return self._mediation

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        self._post.now = now
        self._dispatch(event)
        self._links.due(now)
        self._subscriptions.catch_up.due(now)
        self._mediation.due(now)
        self._mediation.begin(self._surroundings.due(now))
        return self._post.take()

    def wake(self) -> float | None:
        """When the core wants a Tick, at the latest."""
        parts = self._links, self._subscriptions.catch_up, self._mediation, self._surroundings
        wake = min(part.wake() for part in parts)
        return wake if wake < inf else None

    def _dispatch(self, event: events.Event) -> None:
        match event:
            case events.LinkSaid(broker, message):
                self._heard(broker, message)
            case events.ClientSaid(client, Subscribe() as subscribe):
                self._subscribe(client, subscribe)
            case events.ClientSaid(client, Unsubscribe()):
                self._subscriptions.remove(client)
            case events.ClientLost(client):
                self._subscriptions.lose(client)
            case events.Flushed(client):
                self._subscriptions.catch_up.flushed(client)
            case events.Gauged():
                self._gauges.measure(self._post.now, event)
                self._surroundings.measured()
            case events.LinkOpened(broker, is_head):
                self._links.opened(broker, is_head)
            case events.LinkLost(broker):
                self._links.lost(broker)
                self._subscriptions.interrupt()

    def _heard(self, link: str, message: FromLink) -> None:
        match message:
            case Routed():
                self._deliver(message)
            case Mark(head, offset, incarnation):
                self._subscriptions.mark(head, offset, incarnation)
            case Control(_, sender, body):
                self._control(sender, body)
            case Change():
                self._links.changed(link, message)
            case Sync():
                self._links.synced(link, message)
                self._subscriptions.fetch_all()
            case Interrupted(heads):
                self._subscriptions.interrupt(heads)
            case Restored():
                self._subscriptions.fetch_all()
            case ClusterLoad():
                pass  # Heads say it to heads.

    def _control(self, sender: str, body: Body) -> None:
        match body:
            case Found():
                self._subscriptions.catch_up.found(body)
            case LocalLoad():
                self._surroundings.hear(body)
            case ClusterView():
                self._surroundings.view(body)
            case Fetch():
                pass
            case _:
                self._mediation.hear(sender, body)

    def _deliver(self, publication: Routed) -> None:
        size = _size(publication)
        matched, subscribers = self._subscriptions.deliver(publication)
        self._gauges.count(self._post.now, size * subscribers)
        self._mediation.record(publication.content, matched, size)

    def _subscribe(self, client: int, subscribe: Subscribe) -> None:
        try:
            filter = parse(subscribe.where)
        except FilterError as error:
            self._subscriptions.lose(client)
            self._post.reply(client, Refused(str(error)))
            self._post.add(CloseClient(client, "the filter cannot be read"))
            return
        self._subscriptions.subscribe(client, subscribe.subscriber, filter, subscribe.cursors)
        if subscribe.session:
            self._mediation.came(subscribe.subscriber, subscribe.session)


def _size(publication: Routed) -> int:
    """What a subscriber is sent of it, in bytes."""
    return len(_encode(note(publication)))


_encode = msgspec.json.Encoder().encode
