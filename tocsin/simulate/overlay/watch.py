"""Watches what a broker says of sessions: whoever has said that one is over must not go on with it."""

from __future__ import annotations

from tocsin.overlay import actions
from tocsin.overlay.dialogue import Move
from tocsin.overlay.messages import ClusterAlive, Control, SessionEnd


class SessionWatch:
    """Sees all that a broker does, from its start to its end. ``wrong`` has sentences about contradictions."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
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
            case actions.SendClient(message=Move(session=id)) if id in self._ended:
                self.wrong.append(f"edge {self._broker} sends somebody away in session {id}, which it has ended")
