"""What the coordinator is told.

A link is one connection of a broker, numbered by the driver and never numbered again. What people and programs ask
carries a handle, by which the driver knows whom to give the :class:`~tocsin.coordinator.actions.Reply`.
"""

from __future__ import annotations

from msgspec import Struct

from tocsin.balance.control.controller import Decision
from tocsin.coordinator.keyring import Keyring
from tocsin.model.coordination import FromBroker

Link = int
Handle = int


class Tick(Struct, frozen=True):
    """The time that ``wake`` asked for has come."""


class Received(Struct, frozen=True):
    """A broker's message. The first one on a link must be its ``Hello``."""

    link: Link
    message: FromBroker


class SignOfLife(Struct, frozen=True):
    """Any other sign of life on a link, such as the answer to a ping."""

    link: Link


class Lost(Struct, frozen=True):
    """A link is gone."""

    link: Link


class BatchStored(Struct, frozen=True):
    """This batch, and so all before it, would outlive a crash."""

    batch: int


class Amended(Struct, frozen=True):
    """The keyring was changed in the store, and ``names`` are registered there, with the number of the registration;
    some may be known already."""

    keyring: Keyring
    names: tuple[tuple[str, int], ...] = ()


class Decided(Struct, frozen=True, eq=False):
    """What came of a :class:`~tocsin.coordinator.actions.Decide`."""

    round: int
    decision: Decision


class RegisterUser(Struct, frozen=True):
    """Asks for a subscriber's token; :class:`~tocsin.coordinator.answers.Registered` is the answer. With ``fresh``, a
    name that is taken already is refused: its token would be that of somebody else. ``groups`` are put into it."""

    handle: Handle
    name: str
    fresh: bool = False
    groups: tuple[str, ...] = ()


class RegisterBroker(Struct, frozen=True):
    """Makes a broker known before it comes; answered as :class:`RegisterUser`, with a broker's token."""

    handle: Handle
    name: str
    url: str
    capacity: float = 1.0
    location: tuple[float, float] | None = None


class RequestBroker(Struct, frozen=True):
    """A subscriber asks where to log in; :class:`~tocsin.coordinator.answers.Located` is the answer."""

    handle: Handle
    token: str
    location: tuple[float, float] | None = None


class Unregister(Struct, frozen=True):
    """A subscriber leaves for good, by its own token; said again by one that has left it is done, too."""

    handle: Handle
    token: str


class RemoveUser(Struct, frozen=True):
    """Removes a subscriber with all it holds. Its tokens are worthless; its name may be registered again."""

    handle: Handle
    name: str


class RemoveBroker(Struct, frozen=True):
    """Forgets a broker that is dead or drained and that nobody is on. Its tokens are worthless."""

    handle: Handle
    name: str


class Balance(Struct, frozen=True):
    """Balancing without being asked, on or off. Draining goes on either way."""

    handle: Handle
    on: bool


class ShowPlan(Struct, frozen=True):
    """What would be moved now, and why; :class:`~tocsin.coordinator.answers.Proposal`. Nothing is moved."""

    handle: Handle


class ApplyPlan(Struct, frozen=True):
    """As :class:`ShowPlan`, and it is carried out."""

    handle: Handle


class Drain(Struct, frozen=True):
    """Empties a broker and keeps it empty, or no longer (``on`` false)."""

    handle: Handle
    broker: str
    on: bool = True


class AskStatus(Struct, frozen=True):
    """How things stand; :class:`~tocsin.coordinator.answers.NetworkStatus`."""

    handle: Handle


Removal = Unregister | RemoveUser | RemoveBroker
Order = RegisterUser | RegisterBroker | RequestBroker | Removal | Balance | ShowPlan | ApplyPlan | Drain
Request = Order | AskStatus
Event = Tick | Received | SignOfLife | Lost | BatchStored | Amended | Decided | Request
