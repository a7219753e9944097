"""Where a cursor stands in a channel's present history, whatever became of the data cluster since it was learned.

Executions are numbered 1, 2, 3 … and the numbers come again when a channel is dropped and created anew, or an older
copy of the data directory takes the place of a newer one. So a number means something only together with the
*incarnation* under which it was learned. Each channel has a history, one entry for each incarnation: the creation of
the channel, and every start of the data cluster since. Copies of a data directory share their first entries and go on
under incarnations of their own, which tell from where on they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_urlsafe
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from tocsin.model.messages import LARGEST, Execution

Incarnation = Annotated[str, Meta(max_length=64, description="Under which incarnation of a channel a number counts.")]

DROPPED: Final = -1
"""Where a cursor stands whose channel was dropped: what is there now under the same name is another one."""
NEWEST: Final = 64
"""So many entries of a history are kept and told."""


class Era(msgspec.Struct, frozen=True, array_like=True):
    """An incarnation, and the last execution it shares with the one before: ``DROPPED`` when it shares nothing."""

    incarnation: Incarnation
    began: Annotated[int, Meta(ge=DROPPED, le=LARGEST)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Everything up to ``execution``, as the executions are numbered under ``incarnation``."""

    execution: Execution
    incarnation: Incarnation = ""


History = Sequence[Era]


def to_wire(cursor: Cursor) -> int | Cursor:
    """A cursor as it is told: the number alone where there is but one incarnation."""
    return cursor if cursor.incarnation else cursor.execution


def from_wire(cursor: int | Cursor, incarnation: str) -> Cursor:
    """A cursor as it was told; a number alone is counted under ``incarnation``."""
    return cursor if isinstance(cursor, Cursor) else Cursor(cursor, incarnation)


def new_incarnation() -> str:
    """One that nobody ever had."""
    return token_urlsafe(8)


def incarnation(history: History) -> str:
    """The present one."""
    return history[-1].incarnation if history else ""


def knows(history: History, known: str) -> bool:
    """Whether numbers learned under an incarnation can be told in this history."""
    return known == incarnation(history) or any(era.incarnation == known for era in history)


def common_execution(history: History, known: str, before: History = ()) -> int:
    """Up to which execution an incarnation and the present one are the same.

    That is 0 for one that is not in the history, and ``DROPPED`` for one whose channel was dropped since. Whoever knows
    what was ``before`` it need not begin anew: a copy that is restored twice has lost what came after the first time,
    but not what both have in common.
    """
    if known == incarnation(history):
        return LARGEST
    if knows(history, known):
        place = max(place for place, era in enumerate(history) if era.incarnation == known)
        return min(era.began for era in history[place + 1 :])
    earlier = [place for place, era in enumerate(before) if knows(history, era.incarnation)]
    if not earlier:
        return 0
    return min(
        [common_execution(history, before[earlier[-1]].incarnation), *(era.began for era in before[earlier[-1] + 1 :])]
    )


def resolve(history: History, cursor: Cursor) -> int:
    """The same cursor in the present history: what is after it is new to whoever has had everything up to it."""
    return min(cursor.execution, common_execution(history, cursor.incarnation))


def since(history: History, known: str) -> list[Era]:
    """As much of a history as somebody needs who knows an incarnation of it; all, if it is none of it."""
    places = [place for place, era in enumerate(history) if era.incarnation == known]
    return list(history[places[-1] :] if places else history)
