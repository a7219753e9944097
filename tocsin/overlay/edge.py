"""An edge broker: serves subscribers, and asks its head for what they want."""

from __future__ import annotations

from math import inf

from tocsin.errors import FilterError
from tocsin.overlay import events
from tocsin.overlay.actions import Action, CloseClient
from tocsin.overlay.dialogue import Refused, Subscribe, Unsubscribe
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import Links, read
from tocsin.overlay.messages import Change, Control, Found, FromLink, Interrupted, Mark, Restored, Routed, Sync
from tocsin.overlay.post import Post
from tocsin.overlay.subscriptions import Subscriptions


class Edge:
    """An edge broker without sockets and clock.

    Args:
        name: its own, which no other broker of the overlay has.
        incarnation: what it has not been started under before.

    What can go wrong: its head is lost. Subscribers stay, and get what they missed when there is a way again. The edge
    itself dies: its subscribers come to others, with their cursors. A filter that cannot be read is refused, and ends
    its connection.
    """

    def __init__(self, name: str, incarnation: str, limits: OverlayLimits | None = None) -> None:
        self.name, self._limits = name, limits or OverlayLimits()
        self._post = Post()
        self._links = Links(name, self._post)
        self._subscriptions = Subscriptions(name, incarnation, self._post, self._links, self._limits)

    @property
    def links(self) -> Links:
        """The link to its head; only to be looked at."""
        return self._links

    @property
    def subscriptions(self) -> Subscriptions:
        """Whom it serves; only to be looked at."""
        return self._subscriptions

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        self._post.now = now
        self._dispatch(event)
        self._subscriptions.due(now)
        return self._post.take()

    def wake(self) -> float | None:
        """When the core wants a Tick, at the latest."""
        wake = self._subscriptions.wake()
        return wake if wake < inf else None

    def _dispatch(self, event: events.Event) -> None:
        match event:
            case events.LinkSaid(broker, message):
                self._heard(broker, message)
            case events.ClientSaid(session, Subscribe() as subscribe):
                self._subscribe(session, subscribe)
            case events.ClientSaid(session, Unsubscribe()) | events.ClientLost(session):
                self._subscriptions.remove(session)
            case events.LinkOpened(broker, is_head):
                self._links.opened(broker, is_head)
            case events.LinkLost(broker):
                self._links.lost(broker)
                self._subscriptions.interrupt()

    def _heard(self, link: str, message: FromLink) -> None:
        match message:
            case Routed():
                self._subscriptions.deliver(message)
            case Mark(head, offset):
                self._subscriptions.mark(head, offset)
            case Control(_, _, body):
                if isinstance(body, Found):
                    self._subscriptions.found(body)
            case Change():
                self._links.changed(link, message)
            case Sync():
                self._links.synced(link, message)
                self._subscriptions.fetch_all()
            case Interrupted(heads):
                self._subscriptions.interrupt(heads)
            case Restored():
                self._subscriptions.fetch_all()

    def _subscribe(self, session: int, subscribe: Subscribe) -> None:
        try:
            filter = read(subscribe.where)
        except FilterError as error:
            self._post.reply(session, Refused(str(error)))
            self._post.add(CloseClient(session, "the filter cannot be read"))
            return
        self._subscriptions.subscribe(session, subscribe.subscriber, filter, subscribe.cursors)
