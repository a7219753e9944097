"""What the coordinator is told.

A link is one connection of a broker, numbered by the driver and never numbered again. What people and programs ask
carries a handle, by which the driver knows whom to give the :class:`~tocsin.coordinator.actions.Reply`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.balance.control.controller import Decision
from tocsin.coordinator.keyring import Keyring
from tocsin.model.coordination import FromBroker

Link = int
Handle = int


@dataclass(frozen=True)
class Tick:
    """The time that ``wake`` asked for has come."""


@dataclass(frozen=True)
class Received:
    """A broker's message. The first one on a link must be its ``Hello``."""

    link: Link
    message: FromBroker


@dataclass(frozen=True)
class SignOfLife:
    """Any other sign of life on a link, such as the answer to a ping."""

    link: Link


@dataclass(frozen=True)
class Lost:
    """A link is gone."""

    link: Link


@dataclass(frozen=True)
class BatchStored:
    """This batch, and so all before it, would outlive a crash."""

    batch: int


@dataclass(frozen=True)
class Amended:
    """The keyring was changed in the store, and ``names`` are registered there, with the number of the registration;
    some may be known already."""

    keyring: Keyring
    names: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Decided:
    """What came of a :class:`~tocsin.coordinator.actions.Decide`."""

    round: int
    decision: Decision


@dataclass(frozen=True)
class RegisterUser:
    """Asks for a subscriber's token; :class:`~tocsin.coordinator.answers.Registered` is the answer. With ``fresh``, a
    name that is taken already is refused: its token would be that of somebody else. ``groups`` are put into it."""

    handle: Handle
    name: str
    fresh: bool = False
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegisterBroker:
    """Makes a broker known before it comes; answered as :class:`RegisterUser`, with a broker's token."""

    handle: Handle
    name: str
    url: str
    capacity: float = 1.0
    place: tuple[float, float] | None = None


@dataclass(frozen=True)
class RequestBroker:
    """A subscriber asks where to log in; :class:`~tocsin.coordinator.answers.Located` is the answer."""

    handle: Handle
    token: str
    place: tuple[float, float] | None = None


@dataclass(frozen=True)
class Unregister:
    """A subscriber leaves for good, by its own token; said again by one that has left it is done, too."""

    handle: Handle
    token: str


@dataclass(frozen=True)
class RemoveUser:
    """Removes a subscriber with all it holds. Its tokens are worthless; its name may be registered again."""

    handle: Handle
    name: str


@dataclass(frozen=True)
class RemoveBroker:
    """Forgets a broker that is dead or drained and that nobody is on. Its tokens are worthless."""

    handle: Handle
    name: str


@dataclass(frozen=True)
class Balance:
    """Balancing without being asked, on or off. Draining goes on either way."""

    handle: Handle
    on: bool


@dataclass(frozen=True)
class ShowPlan:
    """What would be moved now, and why; :class:`~tocsin.coordinator.answers.Proposal`. Nothing is moved."""

    handle: Handle


@dataclass(frozen=True)
class ApplyPlan:
    """As :class:`ShowPlan`, and it is carried out."""

    handle: Handle


@dataclass(frozen=True)
class Drain:
    """Empties a broker and keeps it empty, or no longer (``on`` false)."""

    handle: Handle
    broker: str
    on: bool = True


@dataclass(frozen=True)
class AskStatus:
    """How things stand; :class:`~tocsin.coordinator.answers.NetworkStatus`."""

    handle: Handle


Removal = Unregister | RemoveUser | RemoveBroker
Order = RegisterUser | RegisterBroker | RequestBroker | Removal | Balance | ShowPlan | ApplyPlan | Drain
Request = Order | AskStatus
Event = Tick | Received | SignOfLife | Lost | BatchStored | Amended | Decided | Request
