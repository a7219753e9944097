"""The brokers: which are known, which are connected, and how each is doing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from tocsin.coordinator.deviation import Deviation
from tocsin.coordinator.events import Link
from tocsin.coordinator.outbox import TransactionalOutbox
from tocsin.coordinator.store.records import BrokerRecord, PutBroker
from tocsin.errors import NotFoundError
from tocsin.model.coordination import Load


@dataclass
class BrokerMember:
    """A broker as it is now.

    Args:
        link: its connection; None: there is none.
        due: when it is held to be dead, unless something is heard of it before.
        dead: it is held to be dead.
        joining: it is new, and has not had its share of the load yet.
        load: what it last reported, and ``reported`` when.
        deviation: how far that is from what is planned.
        online: whose connections it has.
    """

    record: BrokerRecord
    due: float
    link: Link | None = None
    dead: bool = False
    joining: bool = False
    load: Load = field(default_factory=lambda: Load(0.0, 0.0))
    reported: float = -math.inf
    deviation: Deviation = field(default_factory=Deviation)
    online: dict[str, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.record.name

    @property
    def open(self) -> bool:
        """Whether subscribers may be sent to it."""
        return self.link is not None and not self.record.draining

    @property
    def state(self) -> str:
        """For people."""
        if self.dead:
            return "dead"
        if self.link is None:
            return "away"
        return "draining" if self.record.draining else "joining" if self.joining else "serving"


class BrokerRegistry:
    """All brokers that ever came and were not removed, in the order in which they did."""

    def __init__(self, brokers: list[BrokerRecord], due: float, outbox: TransactionalOutbox) -> None:
        self._outbox = outbox
        self._members = {broker.name: BrokerMember(broker, due) for broker in brokers}
        self._links: dict[Link, BrokerMember] = {}
        # Of brokers that were removed; what is said on them counts for nothing, until they are closed.
        self.dismissed: dict[Link, None] = {}

    def __iter__(self) -> Iterator[BrokerMember]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def member(self, name: str) -> BrokerMember:
        """A broker by its name; if there is none, it is a NotFoundError."""
        if name not in self._members:
            raise NotFoundError(f"there is no broker {name!r}; there are {', '.join(self._members) or 'none yet'}")
        return self._members[name]

    def problems(self) -> list[str]:
        """What an operator should know of brokers that are connected."""
        apart = [member for member in self if member.link is not None and member.deviation.problem]
        return [member.deviation.sentence(member.name) for member in apart]

    def knows(self, member: BrokerMember) -> bool:
        """Whether this is still the broker of its name."""
        return self._members.get(member.name) is member

    def at(self, link: Link) -> BrokerMember | None:
        """Whose link this is; None when nobody has said ``Hello`` on it, or it is over."""
        return self._links.get(link)

    def alive(self, name: str | None) -> bool:
        """Whether there is such a broker, and it is not held to be dead."""
        return name is not None and name in self._members and not self._members[name].dead

    def link(self, name: str | None) -> Link | None:
        """The connection of a broker, if it has one."""
        return self._members[name].link if name in self._members else None

    def put(self, record: BrokerRecord, due: float) -> BrokerMember:
        """Notes a broker's address, capacity and location. One known before goes on draining if it did."""
        member = self._members.get(record.name)
        if member is None:
            member = self._members[record.name] = BrokerMember(record, due, joining=len(self._members) > 0)
            self._outbox.write(PutBroker(record))
        elif (record := replace(record, draining=member.record.draining)) != member.record:
            member.record = record
            self._outbox.write(PutBroker(record))
        return member

    def drain(self, member: BrokerMember, on: bool) -> None:
        """Notes whether a broker is to be empty."""
        if member.record.draining != on:
            member.record = replace(member.record, draining=on)
            member.joining = False
            self._outbox.write(PutBroker(member.record))

    def connect(self, member: BrokerMember, link: Link) -> Link | None:
        """A broker has come on a link; returns the one it had before, if that is not known to be over."""
        before = self.disconnect(member)
        self._links[link] = member
        member.link, member.dead = link, False
        return before

    def disconnect(self, member: BrokerMember) -> Link | None:
        """A broker has no link any more; returns the one it had."""
        before, member.link = member.link, None
        if before is not None:
            del self._links[before]
        return before

    def remove(self, member: BrokerMember) -> None:
        """Forgets a broker."""
        if (link := self.disconnect(member)) is not None:
            self.dismissed[link] = None
        del self._members[member.name]
