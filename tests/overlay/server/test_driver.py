"""What an edge's driver sends first to a client that reads slowly."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.overlay.actions import SendNote
from tocsin.overlay.dialogue import Move, Note, Passed, Settle
from tocsin.overlay.edge import Edge
from tocsin.overlay.events import Tick
from tocsin.overlay.post import Post
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.outgoing import Outgoing


class Scripted(Edge):
    """An edge that wants what the test wants."""

    def __init__(self) -> None:
        super().__init__("e", "h", "e.1")
        self.post = Post()

    def handle(self, *_: Any) -> Any:
        return self.post.take()


async def test_who_is_told_to_move_hears_it_before_what_waits_for_it() -> None:
    core, outgoing = Scripted(), Outgoing(10**6)
    driver = OverlayDriver(core)
    client = driver.open_client(outgoing)
    notes = [Note("h", offset, "p", offset, {}) for offset in (1, 2)]
    for note in notes:
        core.post.add(SendNote([client], note))
    for message in (Move("ws://b", "s", 1), Passed("h", 3), Settle("s", 0.1)):
        core.post.reply(client, message)
    driver.tell(Tick())
    sent: list[str] = []

    async def send(text: str) -> None:
        sent.append(msgspec.json.decode(text)["type"])

    await outgoing.flush(send)
    driver.stop()
    assert sent == ["Move", "Settle", "Note", "Note", "Passed"]
