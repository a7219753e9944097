"""What a broker has yet to be told, in bounded space however slowly it reads.

Notices wait in order. When those waiting hold too many BE subscriptions, they are folded into one
:class:`~tocsin.model.control.Behind` per channel, which grows with the channel's further executions until it is taken:
the broker then pulls that range of executions, so nothing is lost but the lists.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec.structs import replace

from tocsin.model.control import Behind, Changed, Dropped, Executed, Failing, Notice

MOST_IDS: Final = 100_000
# Notices to those who are not served, and whom one of them is about; who is not told now is when it happens again.
_MOST_FAILING: Final = 1000
_MOST_TOLD: Final = 10_000


class Pending:
    """The notices waiting for one broker; their :attr:`size` never exceeds ``most`` by more than one per channel."""

    def __init__(self, most: int = MOST_IDS) -> None:
        self._most = most
        self._size = 0
        self._waiting: deque[Executed | Dropped] = deque()
        self._behind: dict[str, Behind] = {}
        self._changed: dict[str, Changed] = {}
        self._failing: deque[Failing] = deque(maxlen=_MOST_FAILING)

    def __bool__(self) -> bool:
        return bool(self._changed or self._behind or self._waiting or self._failing)

    @property
    def size(self) -> int:
        """What waits: every notice counts one, and one for each BE subscription it lists."""
        return self._size + len(self._behind) + len(self._changed)

    def add(self, notice: Notice) -> None:
        """Notes what happened; a channel's executions must come in order. Of one that is dropped nothing else waits."""
        if isinstance(notice, Changed):
            self._changed[notice.channel] = notice
            return
        if isinstance(notice, Failing):
            self._fail(notice)
            return
        if isinstance(notice, Dropped):
            self._drop(notice)
            return
        if isinstance(notice, Behind):
            self._fold_all()
        if isinstance(notice, Behind) or notice.channel in self._behind:
            self._fold(notice)
            return
        self._waiting.append(notice)
        self._size += _size(notice)
        if self._size > self._most:
            self._fold_all()

    def take(self) -> Notice | None:
        """The next notice to send, or None; first by which terms to judge, since somebody may be asking."""
        if self._changed:
            return self._changed.pop(next(iter(self._changed)))
        if self._behind:
            # Of a channel that is behind nothing else waits, so order within each channel is kept.
            return self._behind.pop(next(iter(self._behind)))
        if not self._waiting:
            return self._failing.popleft() if self._failing else None
        notice = self._waiting.popleft()
        self._size -= _size(notice)
        return notice

    def _fail(self, notice: Failing) -> None:
        room = self._most - sum(len(each.bes) for each in self._failing)
        bes = notice.bes[: max(room, 0)]
        for first in range(0, len(bes), _MOST_TOLD):
            self._failing.append(replace(notice, bes=bes[first : first + _MOST_TOLD]))

    def _drop(self, notice: Dropped) -> None:
        """Channels created anew under the same name, each dropped before the broker was told, are told of all."""
        self._behind.pop(notice.channel, None)
        self._changed.pop(notice.channel, None)
        kept = [each for each in self._waiting if isinstance(each, Dropped) or each.channel != notice.channel]
        failing = [each for each in self._failing if each.channel != notice.channel]
        self._failing = deque(failing, _MOST_FAILING)
        self._waiting = deque([*kept, notice])
        self._size = sum(map(_size, self._waiting))

    def _fold_all(self) -> None:
        dropped = [notice for notice in self._waiting if isinstance(notice, Dropped)]
        for notice in self._waiting:
            if not isinstance(notice, Dropped):
                self._fold(notice)
        self._waiting = deque(dropped)
        self._size = len(dropped)

    def _fold(self, notice: Executed | Behind) -> None:
        first, last = (notice.first, notice.last) if isinstance(notice, Behind) else (notice.execution,) * 2
        before = self._behind.get(notice.channel)
        if before:
            first, last = min(first, before.first), max(last, before.last)
        self._behind[notice.channel] = Behind(notice.channel, first, last, notice.incarnation)


def _size(notice: Executed | Dropped) -> int:
    return 1 + len(notice.bes) if isinstance(notice, Executed) else 1
