"""Watches what a broker says of sessions: whoever has said that one is over must not go on with it, nobody takes load
who has too much or has not come to rest, and nobody is given too much."""

from __future__ import annotations

from tocsin.overlay import actions
from tocsin.overlay.dialogue import Move, Settle
from tocsin.overlay.load import BrokerLoad
from tocsin.overlay.messages import ClusterAlive, Control, SessionAccept, SessionDone, SessionEnd
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.clock import VirtualClock


class SessionWatch:
    """Sees all that a broker does, from its start to its end. ``wrong`` has sentences about contradictions."""

    def __init__(self, broker: str, tuning: Tuning, clock: VirtualClock) -> None:
        self._broker, self._tuning, self._clock = broker, tuning, clock
        self._rests = clock.now
        self._ended: set[str] = set()
        self.wrong: list[str] = []

    def see(self, action: actions.Action) -> None:
        """The broker does something."""
        match action:
            case actions.SendLink(message=Control(sender=sender)) if sender != self._broker:
                return  # It passes on what another says.
            case actions.SendLink(message=Control(body=SessionEnd(id))):
                self._ended.add(id)
            case actions.SendLink(message=Control(body=ClusterAlive(id))) if id in self._ended:
                self.wrong.append(f"head {self._broker} goes on with session {id}, which it has ended")
            case actions.SendLink(message=Control(body=SessionDone())) | actions.SendClient(message=Settle()):
                self._rests = self._clock.now + self._tuning.stabilize_seconds
            case actions.SendLink(message=Control(body=SessionAccept(_, load))):
                self._accepts(load)
            case actions.SendClient(message=Move(session=id)) if id in self._ended:
                self.wrong.append(f"edge {self._broker} sends somebody away in session {id}, which it has ended")

    def gives(self, acceptor: str, load: BrokerLoad) -> None:
        """It sends subscribers to another one, which it expects to be loaded like this then."""
        if self._tuning.exceeds_lower(load.ratios):
            self.wrong.append(f"edge {self._broker} gives {acceptor} too much: {load}")

    def _accepts(self, load: BrokerLoad) -> None:
        if self._tuning.exceeds_lower(load.ratios):
            self.wrong.append(f"edge {self._broker} takes more, and has too much: {load}")
        if self._clock.now < self._rests:
            self.wrong.append(f"edge {self._broker} takes more, and should stabilise until {self._rests}")
