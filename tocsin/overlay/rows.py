"""What a channel finds as publications of a head: which id each row has, and what becomes of its columns.

A row's id follows from where it was found, so a row that is told again after a crash has the same, and the head drops
it. The publisher is ``channel/NAME/NUMBER``, with the number of the subscription; a client cannot have such a name. The
sequence number is that of the execution times 2^20, and the row's place in what the execution found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tocsin.content.values import LARGEST_NUMBER, MOST_CHARACTERS, Value, check_publication
from tocsin.errors import InvalidError
from tocsin.overlay.events import RowFound
from tocsin.overlay.replay import OWN_NAMES, ReplayLog

MOST_ROWS: Final = 2**20
"""Rows of one execution that have numbers of their own."""


class ChannelRows:
    """Gives the rows of one channel their ids, by what the head's log has.

    ``refused`` counts the rows that cannot be publications, and ``reason`` is that of the last.

    What can go wrong: the data cluster was started on an older copy of its data, so that executions are counted again
    from there, and other rows would have ids that the head has seen. That is noticed when an execution comes that is
    not after the last one, or a row that the log has otherwise; from then on the publisher has another name,
    ``channel/NAME/NUMBER/2`` and so on.
    """

    def __init__(self, channel: str, log: ReplayLog) -> None:
        self._channel, self._log = channel, log
        self._executions: dict[int, int] = {}
        self.refused = 0
        self.reason = ""

    def begin(self) -> None:
        """The subscription begins anew, so executions that were told before may be told again."""
        self._executions.clear()

    def publish(self, subscription: int, execution: int, rows: Sequence[Mapping[str, Any]]) -> list[RowFound]:
        """The publications that an execution's rows are."""
        given = {number: self._content(number, row) for number, row in enumerate(rows)}
        contents = {number: content for number, content in given.items() if content is not None}
        first = execution * MOST_ROWS
        publisher = self._publisher(subscription)
        counted_again = execution <= self._executions.get(subscription, -1)
        self._executions[subscription] = execution
        if counted_again or any(self._is_other(publisher, first + at, each) for at, each in contents.items()):
            publisher = self._name(subscription, self._generation(subscription) + 1)
        return [RowFound(publisher, first + number, content) for number, content in contents.items()]

    def _publisher(self, subscription: int) -> str:
        return self._name(subscription, self._generation(subscription))

    def _generation(self, subscription: int) -> int:
        generation = 1
        while self._log.last_number(self._name(subscription, generation + 1)):
            generation += 1
        return generation

    def _name(self, subscription: int, generation: int) -> str:
        name = f"{OWN_NAMES}{self._channel}/{subscription}"
        return name if generation == 1 else f"{name}/{generation}"

    def _is_other(self, publisher: str, sequence: int, content: dict[str, Value]) -> bool:
        if sequence > self._log.last_number(publisher):
            return False
        known = self._log.find(publisher, sequence)
        return known is not None and known.content != content

    def _content(self, number: int, row: Mapping[str, Any]) -> dict[str, Value] | None:
        try:
            if number >= MOST_ROWS:
                raise InvalidError(f"an execution found more than {MOST_ROWS:,} rows")
            return as_content(row)
        except InvalidError as error:
            self.refused, self.reason = self.refused + 1, str(error)
            return None


def as_content(row: Mapping[str, Any]) -> dict[str, Value]:
    """A row's columns as attributes; InvalidError if they cannot be.

    NULL is left out, arrays, maps and structs are JSON text, whole numbers beyond 2^53 are their digits, and text is
    cut after 1,024 characters.
    """
    return check_publication({name: _fit(value) for name, value in row.items()})


def _fit(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        return str(value)
    if isinstance(value, dict | list):
        value = msgspec.json.encode(value).decode()
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return f"{value[: MOST_CHARACTERS - 1]}…"
    return value
