"""What the coordinator wants done."""

from __future__ import annotations

from msgspec import Struct

from tocsin.balance.control.controller import Controller
from tocsin.balance.control.observation import Observation
from tocsin.coordinator.answers import Answer
from tocsin.coordinator.events import Decided, Handle, Link
from tocsin.coordinator.store.records import Change
from tocsin.errors import TocsinError
from tocsin.model.coordination import FromCoordinator


class Send(Struct, frozen=True):
    """A message for a broker. A link that is gone meanwhile loses it, which does no harm."""

    link: Link
    message: FromCoordinator


class Close(Struct, frozen=True):
    """End a link; no ``Lost`` of it need follow."""

    link: Link


class StoreBatch(Struct, frozen=True):
    """Keep this batch, after all before it, and say ``BatchStored`` when it is kept. A batch that is refused is to be
    tried again: until it is kept, nothing that depends on it is said to anybody."""

    batch: int
    changes: tuple[Change, ...]


class Decide(Struct, frozen=True, eq=False):
    """Ask the controller, and give its decision back. This may take seconds with many subscribers, so a server does
    it in a thread; ``observed`` shares nothing with the core, and the core does not touch the controller meanwhile."""

    round: int
    controller: Controller
    now: float
    observed: Observation

    def run(self) -> Decided:
        """The decision."""
        return Decided(self.round, self.controller.decide(self.now, self.observed))


class Reply(Struct, frozen=True):
    """The answer to a request, or why there is none."""

    handle: Handle
    answer: Answer | TocsinError


Action = Send | Close | StoreBatch | Decide | Reply
