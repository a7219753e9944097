"""Requests that want an answer: a window of them at a time, repeated after every reconnection until answered."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class RequestWindow(Generic[T]):
    """Requests by their id, which stays the same however often they are sent.

    A connection that is lost takes requests, or their answers, with it: :meth:`again` makes all of them due. An answer
    that comes twice finds nothing the second time.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._requests: dict[int, T] = {}
        self._ready: deque[int] = deque()
        self._later: dict[int, float] = {}
        self._sent: set[int] = set()
        self._ever_sent: set[int] = set()

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, id: int, request: T) -> None:
        """Has a request sent as soon as the window allows."""
        self._requests[id] = request
        self._ready.append(id)

    def get(self, id: int | None) -> T | None:
        """The request that waits for an answer with this id."""
        return None if id is None else self._requests.get(id)

    def was_sent(self, id: int) -> bool:
        """Whether a broker may know of it, from this connection or an earlier one."""
        return id in self._ever_sent

    def settle(self, id: int) -> None:
        """Forgets a request: it is answered, or no longer wanted."""
        self._requests.pop(id, None)
        self._later.pop(id, None)
        self._sent.discard(id)
        self._ever_sent.discard(id)

    def postpone(self, id: int, until: float) -> None:
        """Has a request sent once more, later."""
        self._sent.discard(id)
        self._later[id] = until

    def again(self) -> None:
        """There is a new connection: everything is to be sent again, in the order it was asked."""
        self._sent.clear()
        self._later.clear()
        self._ready = deque(self._requests)

    def due(self, now: float) -> list[T]:
        """What is to be sent now."""
        if not self._ready and not self._later:
            return []
        for id in [id for id, until in self._later.items() if until <= now]:
            del self._later[id]
            self._ready.append(id)
        requests: list[T] = []
        while self._ready and len(self._sent) < self._window:
            id = self._ready.popleft()
            if id in self._requests and id not in self._sent:
                self._sent.add(id)
                self._ever_sent.add(id)
                requests.append(self._requests[id])
        return requests

    def wake(self) -> float | None:
        """When there is more to send, though nothing happens."""
        return min(self._later.values()) if self._later else None
