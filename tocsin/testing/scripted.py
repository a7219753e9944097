"""A data cluster that finds what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from tocsin.model import control
from tocsin.model.messages import Result
from tocsin.simulate.cluster import DataClusterModel

Parameters = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]


class ScriptedData(DataClusterModel):
    """The simulator's, with rows of a test's own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rows: dict[tuple[int, int], Rows] = {}

    def find_rows(self, channel: str, find: Callable[[Parameters], Rows]) -> dict[str, control.Executed]:
        """Runs a channel once: ``find`` says which rows it finds for each set of parameters; what brokers are told."""
        return self.execute(self.spelling_of(channel), self.prepare(channel, find))

    def prepare(self, channel: str, find: Callable[[Parameters], Rows]) -> Callable[[int], bool]:
        """Has the next execution of a channel find those rows; tells for which BE subscriptions there are any."""
        channel = self.spelling_of(channel)
        number = self.execution.get(channel, 0) + 1
        found = {be: rows for be in self.bes_by_channel.get(channel, []) if (rows := find(self._parameters(be)))}
        self._rows |= {(be, number): rows for be, rows in found.items()}
        return found.__contains__

    def results(self, channel: str, first: int, last: int, wanted: list[int]) -> list[Result]:
        """What executions ``first`` to ``last`` found, as far as it is kept."""
        return [self._apply_script(one) for one in super().results(channel, first, last, wanted)]

    def _apply_script(self, one: Result) -> Result:
        rows = self._rows.get((one.be, one.execution))
        if rows is None:
            return one
        payload = msgspec.json.encode(rows)
        return Result(one.execution, one.be, len(rows), len(payload), Raw(payload))

    def _parameters(self, be: int) -> Parameters:
        parameters: Parameters = msgspec.json.decode(self.words[be][1])
        return parameters
