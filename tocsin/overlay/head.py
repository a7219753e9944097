"""A cluster-head: takes publications in, keeps them for a while, and routes them to neighbours that want them."""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec.structs import replace

from tocsin.content.values import check_publication
from tocsin.errors import FilterError, InvalidError
from tocsin.overlay import events
from tocsin.overlay.actions import Action, AppendLog, CloseClient, CloseLink, ForgetPublishers
from tocsin.overlay.alliance import Alliance
from tocsin.overlay.dialogue import Introduce, Known, Publish, Refused, Stored
from tocsin.overlay.federation import Federation
from tocsin.overlay.interests import OWN
from tocsin.overlay.limits import FORGETTING, OverlayLimits
from tocsin.overlay.links import EVERYTHING, Links, address_filter, read
from tocsin.overlay.messages import (
    HEADS,
    Body,
    Change,
    ClusterLoad,
    ClusterView,
    Control,
    EdgeBody,
    Fetch,
    Found,
    FromEdge,
    FromLink,
    Interrupted,
    LocalLoad,
    Mark,
    Restored,
    Routed,
    Sync,
)
from tocsin.overlay.post import Post
from tocsin.overlay.replay import KeptLog, ReplayLog
from tocsin.overlay.tuning import Tuning

# So often at most it is looked for publishers to be forgotten.
_BRIEF: Final = 0.1
_STRANGER: Final = "say first which publisher this is"
MOST_SKIPPED: Final = 1_000_000
"""Numbers that a publisher may leave out at once: else a single one could leave none for those that follow."""
_SKIPPED: Final = f"a publisher's numbers rise one by one; more than {MOST_SKIPPED:,} were left out"


class Head:
    """A cluster-head without sockets, disk and clock.

    Args:
        name: its own and its cluster's, which no other broker of the overlay has.
        incarnation: what it has not been started under before.
        kept: its log, as it was stored when it had begun under this incarnation; a new one by default.

    What can go wrong: a neighbour is lost. Whoever lies on the other side of this head is told of which heads nothing
    comes any more, and again when there is a way; what was missed is fetched by edges, from the heads it was published
    to. A publication that cannot be one is refused. The head dies: what was confirmed is stored, publishers send the
    rest again. Heads are linked in a circle, in which everything would go round for ever: whoever closes it hears its
    own ``Restored`` at once, and ends the link that this came on. An edge says what only heads say, or speaks for
    another: its link is ended, so that nobody else gets what it makes up.
    """

    def __init__(
        self,
        name: str,
        incarnation: str,
        kept: KeptLog | None = None,
        limits: OverlayLimits | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.name, self._limits = name, limits or OverlayLimits()
        self._post = Post()
        self._links = Links(name, self._post, self._limits.linger_seconds, self._limits.at_once)
        self._links.want_control(address_filter("to", HEADS))
        most, most_bytes = self._limits.replay_publications, self._limits.replay_bytes
        self._log = ReplayLog(name, kept or _new_log(incarnation), most, most_bytes)
        self._federation = Federation(name, self._post, self._links, tuning or Tuning(), self._limits)
        self._alliance = Alliance(name, incarnation, self._post, self._links, self._federation, self._limits)
        # From which neighbour the publications of another head come.
        self._via: dict[str, str] = {}
        self._publishers: dict[int, str] = {}
        self._clients: dict[str, int] = {}
        # Those that have not been told what is stored, with the incarnation that they know.
        self._unanswered: dict[str, str] = {}
        self._marked = self._log.last
        self._next_mark = self._next_forget = inf

    @property
    def links(self) -> Links:
        """Its neighbours; only to be looked at."""
        return self._links

    @property
    def log(self) -> ReplayLog:
        """What it keeps; only to be looked at."""
        return self._log

    @property
    def federation(self) -> Federation:
        """Its cluster and those next to it; only to be looked at."""
        return self._federation

    @property
    def alliance(self) -> Alliance:
        """Its sessions with other clusters; only to be looked at."""
        return self._alliance

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        self._post.now = now
        self._log.pass_time(now)
        self._dispatch(event)
        self._links.due(now)
        if self._next_mark <= now:
            self._mark()
        self._forget_old(now)
        self._alliance.due(now)
        self._alliance.begin(self._federation.due(now))
        return self._post.take()

    def wake(self) -> float | None:
        """When the core wants a Tick, at the latest."""
        wake = min(
            self._next_mark, self._next_forget, self._links.wake(), self._federation.wake(), self._alliance.wake()
        )
        return wake if wake < inf else None

    def _dispatch(self, event: events.Event) -> None:
        match event:
            case events.LinkSaid(broker, message):
                self._heard(broker, message)
            case events.LogStored(offset):
                self._stored(offset)
            case events.ClientSaid(client, Introduce() as introduce):
                self._introduced(client, introduce)
            case events.ClientSaid(client, Publish() as publish):
                self._publish(client, publish)
            case events.RowFound(publisher, sequence, content):
                if publication := self._log.append(publisher, sequence, content):
                    self._post.add(AppendLog(publication))
            case events.ClientLost(client):
                self._forget_publisher(client)
            case events.LinkOpened(broker, is_head):
                self._links.opened(broker, is_head)
            case events.LinkLost(broker):
                self._lost(broker)

    def _introduced(self, client: int, introduce: Introduce) -> None:
        self._forget_publisher(client)
        publisher = introduce.publisher
        if (before := self._clients.get(publisher)) is not None:
            # Whoever has the name now is told what is stored: the other one would wait for ever.
            self._forget_publisher(before)
            self._post.add(CloseClient(before, "the publisher has come again"))
        self._publishers[client], self._clients[publisher] = publisher, client
        # Who was forgotten numbers anew what it has waiting, as if the log were another.
        self._unanswered[publisher] = introduce.incarnation if self._log.knows(publisher) else ""
        self._log.admit(publisher)
        self._answer(publisher)

    def _answer(self, publisher: str) -> None:
        """Tells a publisher what is stored, once all is that was taken. Else a program that takes the place of one that
        has died would give a number to a publication of its own that one of the other has already."""
        log, client = self._log, self._clients[publisher]
        if log.last_number(publisher) == log.stored_number(publisher):
            continued = log.continues(self._unanswered.pop(publisher))
            self._post.reply(client, Known(log.stored_number(publisher), log.incarnation, continued))

    def _forget_publisher(self, client: int) -> None:
        publisher = self._publishers.pop(client, "")
        if self._clients.get(publisher) == client:
            del self._clients[publisher]
            self._unanswered.pop(publisher, None)
            self._log.leave(publisher)

    def _forget_old(self, now: float) -> None:
        """Forgets publishers, now and then."""
        if now < self._next_forget < inf:
            return
        seconds = max(_BRIEF, self._limits.publisher_seconds / FORGETTING)
        self._next_forget = now + seconds if self._log.publishers else inf
        if names := self._log.forget(self._clients, self._limits):
            self._post.add(ForgetPublishers(names, self._log.floor))

    def _heard(self, link: str, message: FromLink) -> None:
        if link not in self._links.heads and not _may_say(link, self.name, message):
            what = type(message.body if isinstance(message, Control) else message).__name__
            self._lost(link)
            self._post.add(CloseLink(link, f"{link} is an edge, and has said {what}, which is not for it to say"))
            return
        match message:
            case Routed(self.name) | Mark(self.name):
                # From before a circle was found, and ended.
                pass
            case Routed(head):
                self._via[head] = link
                self._route(message, link)
            case Mark(head):
                self._via[head] = link
                self._pass_on(message, link)
            case Control():
                self._control(message, link)
            case ClusterLoad():
                self._federation.hear_cluster(message, link)
            case Change():
                self._links.changed(link, message)
            case Sync():
                self._links.synced(link, message)
                if link in self._links.heads:
                    # Both sides have asked for what they want, so what edges fetch now is followed by the rest.
                    self._pass_on(Restored([self.name]), link)
            case Interrupted(heads):
                for head in heads:
                    self._via.pop(head, None)
                self._pass_on(message, link)
            case Restored(passed):
                if self.name in passed:
                    self._end_circle(link, passed)
                else:
                    self._pass_on(Restored([*passed, self.name]), link)

    def _end_circle(self, link: str, passed: list[str]) -> None:
        circle = ", ".join(passed[passed.index(self.name) :])
        self._lost(link)
        self._post.add(CloseLink(link, f"heads are linked in a circle, {circle}: clear the overlay.head of one", True))

    def _lost(self, link: str) -> None:
        self._links.lost(link)
        heads = [head for head, via in self._via.items() if via == link]
        for head in heads:
            del self._via[head]
        if heads:
            self._pass_on(Interrupted(heads), link)

    def _pass_on(self, message: FromLink, sender: str) -> None:
        """To everybody else."""
        for link in self._links.open:
            if link != sender:
                self._post.send(link, message)

    def _route(self, publication: Routed, sender: str) -> None:
        for link in self._links.publications.route(publication.content, sender):
            self._post.send(link, publication)

    def _control(self, message: Control, sender: str) -> None:
        if isinstance(message.body, Found):
            self._via[message.body.head] = sender
        if self._links.route(message, sender):
            self._take(message.sender, message.body)

    def _take(self, sender: str, body: Body) -> None:
        match body:
            case Fetch():
                self._fetched(sender, body)
            case LocalLoad():
                self._federation.hear_edge(body)
            case Found() | ClusterView():
                pass
            case _:
                self._alliance.hear(sender, body)

    def _fetched(self, edge: str, fetch: Fetch) -> None:
        log = self._log
        if self.name in fetch.settled:
            return
        shared = {known: log.shared_until(known) for known in fetch.cursors.get(self.name, {})}
        asked = [min(offset, shared[known]) for known, offset in fetch.cursors.get(self.name, {}).items()]
        try:
            filters = [read(text) for text in fetch.filters]
        except FilterError:
            # Of a broker of another version, which may be far away. It looks at what comes itself: so it gets all.
            filters = [EVERYTHING]
        limits, cursor = self._limits, min(asked, default=log.last)
        publications, upto = log.piece(cursor, filters, limits.fetch_publications, limits.fetch_bytes)
        found = Found(fetch.id, self.name, log.incarnation, shared, log.oldest, upto, log.last, publications)
        self._links.route(Control({"to": edge}, self.name, found))

    def _publish(self, client: int, publish: Publish) -> None:
        publisher = self._publishers.get(client)
        if publisher is None:
            self._post.reply(client, Refused(_STRANGER, publish.sequence))
            return
        try:
            content = check_publication(publish.content)
        except InvalidError as error:
            self._post.reply(client, Refused(str(error), publish.sequence))
            return
        if publish.sequence > self._log.last_number(publisher) + MOST_SKIPPED:
            self._post.reply(client, Refused(_SKIPPED, publish.sequence))
            return
        if publication := self._log.append(publisher, publish.sequence, content):
            self._post.add(AppendLog(publication))
        elif publish.sequence <= self._log.stored_number(publisher):
            self._post.reply(client, Stored(publish.sequence))

    def _stored(self, offset: int) -> None:
        for publication in self._log.stored(offset):
            self._route(replace(publication, incarnation=self._log.incarnation), OWN)
            if publication.publisher in self._unanswered:
                self._answer(publication.publisher)
            elif publication.publisher in self._clients:
                self._post.reply(self._clients[publication.publisher], Stored(publication.sequence))
        if self._log.last > self._marked:
            self._next_mark = min(self._next_mark, self._post.now + self._limits.mark_seconds)

    def _mark(self) -> None:
        self._next_mark, self._marked = inf, self._log.last
        self._pass_on(Mark(self.name, self._log.last, self._log.incarnation), OWN)


def _may_say(edge: str, cluster: str, message: FromLink) -> bool:
    """Whether an edge of a cluster says something like this."""
    match message:
        case Control(_, sender, LocalLoad(broker, of)):
            return sender == broker == edge and of == cluster
        case Control(_, sender, body):
            return sender == edge and isinstance(body, EdgeBody)
    return isinstance(message, FromEdge)


def _new_log(incarnation: str) -> KeptLog:
    kept = KeptLog()
    kept.begin(incarnation)
    return kept
