"""A notification as the application sees it, and what is said when some are not to be had any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec


class Note:
    """What one execution of a channel found for one subscription.

    ``subscription`` and ``execution`` together are its id, the same for everybody and for ever. ``payload`` is the JSON
    array of rows as the data cluster wrote it. ``recovered`` says that it was found while the subscriber was away.
    """

    def __init__(
        self,
        subscription: int,
        channel: str,
        execution: int,
        payload: bytes,
        recovered: bool,
        done: Callable[[], None],
    ) -> None:
        self.subscription, self.channel, self.execution = subscription, channel, execution
        self.payload, self.recovered, self._done = payload, recovered, done

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, parsed when first asked for."""
        rows: list[dict[str, Any]] = msgspec.json.decode(self.payload)
        return rows

    def done(self) -> None:
        """Acknowledges it: it will not come again, not even to the next run of this program."""
        self._done()

    def __repr__(self) -> str:
        mark = " recovered" if self.recovered else ""
        return f"<Note {self.channel}/{self.execution}/{self.subscription}{mark}: {len(self.payload)} bytes>"


@dataclass(frozen=True)
class Gap:
    """What executions ``first`` to ``last`` of a channel found for a subscription is not kept any more.

    Something was found for it among these, while nobody fetched it for longer than results are kept.
    """

    subscription: int
    channel: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"what executions {self.first} to {self.last} of {self.channel} found is not kept any more"
