"""Being connected: finding the broker, logging in there, moving to another, and coming back after a loss.

There is one connection that serves or is to serve, and while the subscriber moves a second one, to where it goes. The
second takes over when it is welcomed there; until then everything goes on over the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tocsin.client.core.actions import Action, AskBroker, Close, ConnectionState, Failed, Open, StateChanged, Troubled
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Code

GOING_AWAY: Final = 1001
ABNORMAL: Final = 1006

_FATAL: Final = {
    Code.UNAUTHORIZED: Failed("unauthorized", "the broker does not accept the token; start again with a valid one"),
    Code.REPLACED: Failed("replaced", "another program has connected under this subscriber's name; stop one of them"),
}
# After these the broker is not worth another attempt before the coordinator is asked.
_LEFT: Final = {Code.ELSEWHERE, GOING_AWAY}


@dataclass
class BrokerSession:
    """One connection to a broker, from its opening on: until it is welcomed it has a ``deadline``."""

    number: int
    url: str
    deadline: float
    entered: bool = False
    welcomed: float | None = None


class Connector:
    """Keeps a subscriber connected to the network of brokers.

    What can go wrong: the coordinator does not answer (the last known broker is tried, then it is asked again); a
    broker does not open, welcome or stay (another attempt after a growing, random wait, and the coordinator is asked
    first); the broker to move to does not (all goes on where it was); the serving one is lost during a move (the move
    goes on alone); the token is refused or the name used by another program (it stops, and says so).
    """

    def __init__(self, rules: Rules, random: Random) -> None:
        self._rules = rules
        self._random = random
        self._state = ConnectionState.STOPPED
        self._main: BrokerSession | None = None
        self._next: BrokerSession | None = None
        self._url: str | None = None
        self._opened = 0
        self._failures = 0
        self._until: float | None = None
        self._same_broker = False
        self._excused: set[str] = set()

    @property
    def state(self) -> ConnectionState:
        """How the subscriber is connected."""
        return self._state

    @property
    def serving(self) -> int | None:
        """The connection that requests go to, if there is one."""
        return self._main.number if self._main and self._main.welcomed is not None else None

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to wait for, as nearly all the time."""
        return self._next is None and self._until is None and (self._main is None or self._main.welcomed is not None)

    @property
    def entering(self) -> bool:
        """Whether the broker to move to is about to say what it holds, so that this had better not change."""
        return self._next is not None and self._next.entered

    def knows(self, number: int) -> bool:
        """Whether events of this connection still matter."""
        return self._find(number) is not None

    def awaits_welcome(self, number: int) -> bool:
        """Whether a login was sent on this connection, and not answered."""
        connection = self._find(number)
        return connection is not None and connection.entered and connection.welcomed is None

    def start(self, now: float) -> list[Action]:
        """Begins to connect, unless that was begun before."""
        if self._state is not ConnectionState.STOPPED:
            return []
        self._failures = 0
        return self._ask(now)

    def stop(self) -> list[Action]:
        """Closes whatever is open."""
        closed = [self._close(connection) for connection in (self._main, self._next) if connection]
        self._main = self._next = self._until = None
        return [*closed, *self._become(ConnectionState.STOPPED)]

    def found(self, now: float, url: str) -> list[Action]:
        """The coordinator has named the broker."""
        return self._connect(now, url) if self._state is ConnectionState.ASKING else []

    def unfound(self, now: float, reason: str) -> list[Action]:
        """The coordinator cannot be asked; the broker of before may still be right."""
        if self._state is not ConnectionState.ASKING:
            return []
        told: list[Action] = [Troubled("coordinator", reason or "the coordinator does not answer")]
        return told + (self._connect(now, self._url) if self._url else self._wait(now))

    def opened(self, number: int) -> bool:
        """A connection is open; says whether to log in on it."""
        connection = self._find(number)
        if connection is None or connection.entered:
            return False
        connection.entered = True
        return True

    def entered(self) -> list[Action]:
        """The state after a login was sent."""
        return [] if self.serving is not None else self._become(ConnectionState.ENTERING)

    def welcomed(self, now: float, number: int) -> list[Action]:
        """A login is answered: this connection serves from now on, and the one before it is closed."""
        closed: list[Action] = []
        if self._next and self._next.number == number:
            closed = [self._close(self._main)] if self._main else []
            self._main, self._next = self._next, None
        assert self._main
        self._main.welcomed, self._url = now, self._main.url
        return [*closed, *self._become(ConnectionState.SERVING)]

    def move(self, now: float, url: str) -> list[Action]:
        """Another broker is ready. A move that is going on is given up, unless it is to the same one."""
        if self._main is None or url in (self._main.url, self._next.url if self._next else None):
            return []
        return self._towards(now, url)

    def renew(self, now: float) -> list[Action]:
        """Logs in once more at the same broker, and lets the connection of before go when welcomed."""
        if self._main is None or self._state is not ConnectionState.SERVING:
            return []
        return self._towards(now, self._main.url)

    def drop(self, now: float, number: int) -> list[Action]:
        """Closes a connection that is not what it should be, and treats it as lost."""
        return [Close(number), *self.lost(now, number, ABNORMAL)] if self.knows(number) else []

    def lost(self, now: float, number: int, code: int) -> list[Action]:
        """A connection has ended."""
        connection = self._find(number)
        if connection is None:
            return []
        own = code == Code.REPLACED and not self._overtakes(connection) and self._excuses(connection)
        self._close(connection)
        if connection is self._next:
            self._next = None
            return self._become(ConnectionState.SERVING)
        self._main = None
        if self._next and (code not in _FATAL or self._next.entered):
            return self._promote()
        if code in _FATAL and not own:
            return [*self.stop(), _FATAL[code]]
        return self._retry(now, connection, code)

    def tick(self, now: float) -> list[Action]:
        """Acts on what has taken too long, or has waited long enough."""
        for connection in (self._next, self._main):
            if connection and connection.welcomed is None and connection.deadline <= now:
                told = Troubled("deadline", f"the broker at {connection.url} did not welcome in time")
                return [told, *self.drop(now, connection.number)]
        if self._until is None or self._until > now:
            return []
        if self._state is ConnectionState.ASKING:
            return self.unfound(now, "the coordinator did not answer in time")
        return self._connect(now, self._url) if self._same_broker and self._url else self._ask(now)

    def wake(self) -> float | None:
        """When :meth:`tick` has something to do."""
        times = [
            connection.deadline for connection in (self._main, self._next) if connection and connection.welcomed is None
        ]
        return min([*times, *([self._until] if self._until is not None else [])], default=None)

    def _find(self, number: int) -> BrokerSession | None:
        if self._main and self._main.number == number:
            return self._main
        return self._next if self._next and self._next.number == number else None

    def _become(self, state: ConnectionState) -> list[Action]:
        changed = state is not self._state
        self._state = state
        return [StateChanged(state, self._main.url if self._main else None)] if changed else []

    def _ask(self, now: float) -> list[Action]:
        self._until = now + self._rules.ask_seconds
        return [*self._become(ConnectionState.ASKING), AskBroker()]

    def _open(self, now: float, url: str) -> BrokerSession:
        self._opened += 1
        return BrokerSession(self._opened, url, now + self._rules.login_seconds)

    def _connect(self, now: float, url: str) -> list[Action]:
        self._until = None
        self._main = self._open(now, url)
        return [*self._become(ConnectionState.CONNECTING), Open(self._main.number, url)]

    def _close(self, connection: BrokerSession) -> Close:
        """Lets a connection go. A login without an answer may still arrive, and replace a later connection."""
        if connection.entered and connection.welcomed is None:
            self._excused.add(connection.url)
        return Close(connection.number)

    def _excuses(self, connection: BrokerSession) -> bool:
        """Whether it may be an own earlier login that has replaced this connection; once for each such broker."""
        excused = connection.url in self._excused
        self._excused.discard(connection.url)
        return excused

    def _overtakes(self, connection: BrokerSession) -> bool:
        """Whether it is the next connection that has replaced this one, so that no earlier login is to blame."""
        following = self._next
        return (
            following is not None
            and following is not connection
            and following.entered
            and following.url == connection.url
        )

    def _towards(self, now: float, url: str) -> list[Action]:
        closed = [self._close(self._next)] if self._next else []
        self._next = self._open(now, url)
        return [*closed, *self._become(ConnectionState.MOVING), Open(self._next.number, url)]

    def _promote(self) -> list[Action]:
        self._main, self._next = self._next, None
        assert self._main
        return self._become(ConnectionState.ENTERING if self._main.entered else ConnectionState.CONNECTING)

    def _retry(self, now: float, connection: BrokerSession, code: int) -> list[Action]:
        served = connection.welcomed is not None
        if connection.welcomed is not None and now - connection.welcomed >= self._rules.steady_seconds:
            self._failures = 0
        self._same_broker = served and code not in _LEFT
        if code == Code.ELSEWHERE:
            self._url = None
        return self._wait(now, self._rules.flood_wait if code == Code.FLOOD else 0.0)

    def _wait(self, now: float, least: float = 0.0) -> list[Action]:
        """Waits longer after each failure, and never all subscribers for the same time."""
        longest = min(self._rules.longest_wait, self._rules.first_wait * 2 ** min(self._failures, 32))
        self._failures += 1
        self._until = now + least + longest * self._random.uniform(0.5, 1.0)
        return self._become(ConnectionState.WAITING)
