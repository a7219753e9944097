"""What happens to a subscriber's connection, for who wants to know: the rest works without."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tocsin.client.core.actions import ConnectionState, Missed, Slowed, StateChanged, Troubled
from tocsin.client.mailbox import Mailbox

# Who does not read them gets the latest.
_MOST: Final = 1000


class NoticeKind(StrEnum):
    """What has happened."""

    CONNECTED = "connected"
    MOVED = "moved"  # to another broker, without a gap
    RECONNECTING = "reconnecting"  # nothing comes until connected again
    SLOW = "slow"  # this program, or its network, does not keep up
    GAP = "gap"  # what was found while this program was away is not kept any more
    TROUBLE = "trouble"  # something for the log; it goes on by itself


@dataclass(frozen=True)
class Notice:
    """Something that happened; ``url`` is the broker's, if one serves, and ``message`` a sentence for people."""

    kind: NoticeKind
    message: str
    url: str | None = None


class ConnectionNotices:
    """Turns what the core says about its connection into notices for everybody who listens."""

    def __init__(self) -> None:
        self._listeners: weakref.WeakSet[Mailbox[Notice]] = weakref.WeakSet()
        self._latest: Notice | None = None
        self._url: str | None = None
        self._served = False

    def listen(self) -> Mailbox[Notice]:
        """What happens from now on, beginning with how it stands."""
        mailbox: Mailbox[Notice] = Mailbox(_MOST)
        if self._latest:
            mailbox.put(self._latest)
        self._listeners.add(mailbox)
        return mailbox

    def changed(self, change: StateChanged) -> None:
        """The connection's state is another."""
        if change.state is ConnectionState.SERVING:
            self._serving(change.url)
        elif change.state is ConnectionState.WAITING:
            before = f"; it was {self._url}" if self._url else ""
            self._served = False
            self._stand(Notice(NoticeKind.RECONNECTING, f"no broker serves{before}; trying again"))

    def slowed(self, slowed: Slowed) -> None:
        """The broker says that this side does not keep up."""
        self._say(Notice(NoticeKind.SLOW, f"{slowed.waiting} bytes are under way and not read yet", self._url))

    def missed(self, missed: Missed) -> None:
        """Notes of a subscription are not to be had any more."""
        what = f"executions {missed.first} to {missed.last} found for subscription {missed.subscription}"
        self._say(Notice(NoticeKind.GAP, f"what {what} is not kept any more", self._url))

    def troubled(self, trouble: Troubled) -> None:
        """Something for the log."""
        self._say(Notice(NoticeKind.TROUBLE, f"{trouble.message} ({trouble.code})", self._url))

    def end(self, error: Exception | None) -> None:
        """Nothing happens any more."""
        for listener in list(self._listeners):
            listener.end(error)

    def _serving(self, url: str | None) -> None:
        moved, same = self._served and url != self._url, self._served and url == self._url
        self._url, self._served = url, True
        if moved:
            self._stand(Notice(NoticeKind.MOVED, f"moved to {url}", url))
        elif not same:
            self._stand(Notice(NoticeKind.CONNECTED, f"connected to {url}", url))

    def _stand(self, notice: Notice) -> None:
        self._latest = notice
        self._say(notice)

    def _say(self, notice: Notice) -> None:
        for listener in list(self._listeners):
            listener.put(notice)
