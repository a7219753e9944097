"""Mediation between clusters: a head's sessions with another, in which the edges of both balance with each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tocsin.overlay.detection import Availability, OffloadAction
from tocsin.overlay.federation import Federation
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import LatestRequests, Links, address_filter
from tocsin.overlay.messages import (
    ClusterAccept,
    ClusterAlive,
    ClusterView,
    Control,
    SessionBody,
    SessionEnd,
    SessionReject,
    SessionRequest,
)
from tocsin.overlay.post import Post


@dataclass
class _Courting:
    """Waits for another head's answer; the first action is the one that is tried."""

    id: str
    actions: list[OffloadAction]
    ends: float

    def is_asked(self, head: str, id: str) -> bool:
        """Whether an answer is from whom it was asked of."""
        return (self.actions[0].acceptor, self.id) == (head, id)


@dataclass
class _Allied:
    """Is in a session with another cluster. ``heard`` is when the other head spoke last."""

    id: str
    other: str
    begun: float
    heard: float


class Alliance:
    """A head's sessions with other clusters, one at a time.

    While one lasts, the edges of both clusters hear each other's load messages, and balance as within one cluster. It
    ends when every edge of both has all others in its balanced set.

    What can go wrong: a message is lost, or the other head dies. Heads in a session say so to each other and to their
    edges again and again; who hears nothing for long counts the session as over. So does a head whose session has not
    come to balance after a long time.
    """

    def __init__(
        self, name: str, incarnation: str, post: Post, links: Links, federation: Federation, limits: OverlayLimits
    ) -> None:
        self._name, self._incarnation = name, incarnation
        self._post, self._links, self._federation, self._limits = post, links, federation, limits
        self._session: _Courting | _Allied | None = None
        self._sessions = 0
        self._speak = inf
        # What each head has asked for last: what comes twice is answered once.
        self._requests = LatestRequests()

    @property
    def other(self) -> str | None:
        """The cluster that it is in a session with."""
        return self._session.other if isinstance(self._session, _Allied) else None

    def begin(self, actions: list[OffloadAction]) -> None:
        """Tries what the detection has found, in turn."""
        if self._session is None and actions:
            self._ask(actions)

    def hear(self, sender: str, message: SessionBody) -> None:
        """Another head says something about a session."""
        session = self._session
        match message:
            case SessionRequest(id):
                self._requested(sender, id)
            case ClusterAccept(id):
                if isinstance(session, _Courting) and session.is_asked(sender, id):
                    self._ally(id, sender)
                elif not self._is_allied(sender, id):
                    self._tell(sender, SessionEnd(id))
            case SessionReject(id):
                if isinstance(session, _Courting) and session.is_asked(sender, id):
                    self._ask_next(session)
            case ClusterAlive(id):
                if isinstance(session, _Allied) and self._is_allied(sender, id):
                    session.heard = self._post.now
                else:
                    self._tell(sender, SessionEnd(id))
            case SessionEnd(id, vain):
                if self._is_allied(sender, id):
                    self._finish(vain)

    def _is_allied(self, head: str, id: str) -> bool:
        session = self._session
        return isinstance(session, _Allied) and (session.other, session.id) == (head, id)

    def due(self, now: float) -> None:
        """Says that the session goes on, or ends it."""
        session = self._session
        if isinstance(session, _Courting) and session.ends <= now:
            self._ask_next(session)
        elif isinstance(session, _Allied) and self._speak <= now:
            if self._is_over(session, now):
                balanced = self._is_balanced(session.other)
                self._tell(session.other, SessionEnd(session.id, vain=balanced))
                self._finish(balanced)
            else:
                self._go_on(session)

    def wake(self) -> float:
        """When there is something to do."""
        return self._session.ends if isinstance(self._session, _Courting) else self._speak

    def _ask(self, actions: list[OffloadAction]) -> None:
        self._sessions += 1
        id = f"{self._incarnation}-{self._sessions}"
        self._session = _Courting(id, actions, self._post.now + self._limits.request_seconds)
        self._federation.busy = True
        self._tell(actions[0].acceptor, SessionRequest(id))

    def _ask_next(self, session: _Courting) -> None:
        left = [action for action in session.actions if action.acceptor != session.actions[0].acceptor]
        self._session, self._federation.busy = None, False
        if left:
            self._ask(left)

    def _requested(self, sender: str, id: str) -> None:
        if not self._requests.is_new(sender, id, self._post.now):
            return
        state = self._federation.state()
        if state is not Availability.OK or not self._federation.is_cluster(sender):
            self._tell(sender, SessionReject(id, state.value))
            return
        self._tell(sender, ClusterAccept(id))
        self._ally(id, sender)

    def _ally(self, id: str, other: str) -> None:
        session = self._session = _Allied(id, other, self._post.now, self._post.now)
        self._federation.busy = True
        self._links.want_control(address_filter("load", other))
        self._go_on(session)

    def _go_on(self, session: _Allied) -> None:
        self._speak = self._post.now + self._limits.report_seconds
        self._tell(session.other, ClusterAlive(session.id))
        self._view([session.other])

    def _is_over(self, session: _Allied, now: float) -> bool:
        limits = self._limits
        if now - session.heard >= limits.silent_seconds or now - session.begun >= limits.global_seconds:
            return True
        # Edges must have heard of each other before what they say of each other counts.
        return now - session.begun >= limits.silent_seconds and self._is_balanced(session.other)

    def _is_balanced(self, other: str) -> bool:
        edges = [*self._federation.edges(self._name), *self._federation.edges(other)]
        names = {edge.broker for edge in edges}
        return all(names - {edge.broker} <= set(edge.balanced) for edge in edges)

    def _finish(self, balanced: bool) -> None:
        if isinstance(self._session, _Allied):
            self._links.give_up_control(address_filter("load", self._session.other))
            if balanced:
                self._federation.end_in_vain(self._session.other)
        self._session, self._speak, self._federation.busy = None, inf, False
        self._federation.stabilise()
        self._view([])

    def _view(self, clusters: list[str]) -> None:
        self._links.route(Control({"edges": self._name}, self._name, ClusterView(clusters)))

    def _tell(self, head: str, message: SessionBody) -> None:
        self._links.route(Control({"to": head}, self._name, message))
