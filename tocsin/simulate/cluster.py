"""The data cluster as a model: what it has found for whom, without the data in which it was found."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from tocsin.errors import ForbiddenError
from tocsin.model import control
from tocsin.model.messages import Result
from tocsin.model.terms import Asker, Terms, admit, fill_in


@dataclass
class DataCluster:
    """Executes channels when told to, and remembers what each execution found.

    Args:
        size: the bytes of what an execution finds for a BE subscription; a payload is never smaller than its ids.
        kept: of each BE subscription, results of so many executions of its channel can be pulled; None: of all.
    """

    size: Callable[[int, int], int] = lambda be, execution: 0  # noqa: ARG005
    kept: int | None = None
    execution: dict[str, int] = field(default_factory=dict)
    bes: dict[tuple[str, bytes], int] = field(default_factory=dict)
    channels: dict[int, str] = field(default_factory=dict)
    attached: dict[int, set[str]] = field(default_factory=dict)
    found: dict[int, list[int]] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    terms: dict[str, Terms] = field(default_factory=dict)

    def answer(self, broker: str, request: control.Request) -> control.Message:
        """Acts on a broker's request, at once."""
        match request:
            case control.Attach():
                return self._attached(broker, request)
            case control.Detach(id, bes):
                for be in bes:
                    self.attached[be].discard(broker)
                return control.Detached(id, len(bes))
            case control.Pull(id, channel, first, last, wanted):
                return control.Results(id, self.results(channel, first, last, wanted or []))
            case control.Ping(id):
                return control.Pong(id)

    def _attached(self, broker: str, request: control.Attach) -> control.Message:
        channel, parameters, terms = request.channel, request.parameters, self.terms.get(request.channel, Terms())
        if request.subscriber is not None:
            try:
                admit(terms, Asker(request.subscriber, request.groups), f"channel {channel}")
                parameters = [fill_in(terms, request.subscriber, one) for one in parameters]
            except ForbiddenError as error:
                return control.Error(error.code, str(error), request.id)
        bes = self.attach(broker, channel, parameters)
        return control.Attached(request.id, bes, self.execution.get(channel, 0), terms)

    def attach(self, broker: str, channel: str, parameters: list[dict[str, Any]]) -> list[int]:
        """Counts BE subscriptions to a broker."""
        bes = [self.be(channel, one) for one in parameters]
        for be in bes:
            self.attached[be].add(broker)
        return bes

    def be(self, channel: str, parameters: dict[str, Any]) -> int:
        """The BE subscription of a channel with these parameters."""
        key = (channel, msgspec.json.encode(parameters, order="deterministic"))
        if key not in self.bes:
            be = self.bes[key] = len(self.bes) + 1
            self.channels[be], self.attached[be], self.found[be] = channel, set(), []
            self.lines.setdefault(channel, []).append(be)
        return self.bes[key]

    def results(self, channel: str, first: int, last: int, wanted: list[int]) -> list[Result]:
        """What executions ``first`` to ``last`` found, as far as it is kept."""
        oldest, pairs = max(first, self.oldest(channel)), []
        for be in wanted:
            if self.channels[be] == channel:
                found = self.found[be]
                pairs += [(each, be) for each in found[bisect_left(found, oldest) : bisect_right(found, last)]]
        return [result(be, execution, self.size(be, execution)) for execution, be in sorted(pairs)]

    def oldest(self, channel: str) -> int:
        """Of executions before this one nothing is kept."""
        return 1 if self.kept is None else max(1, self.execution.get(channel, 0) - self.kept + 1)

    def gone(self, channel: str, wanted: list[int]) -> dict[int, int]:
        """Of those BE subscriptions that had something which is not kept any more, the last execution that found it."""
        oldest = self.oldest(channel)
        ends = {be: bisect_left(self.found[be], oldest) for be in wanted if self.channels[be] == channel}
        return {be: self.found[be][end - 1] for be, end in ends.items() if end}

    def execute(self, channel: str, chosen: Callable[[int], bool]) -> dict[str, control.Executed]:
        """Runs a channel once, which finds something for the ``chosen``; what each broker is told."""
        told: dict[str, list[int]] = {}
        for be in self.find(channel, chosen):
            for broker in sorted(self.attached[be]):
                told.setdefault(broker, []).append(be)
        number = self.execution[channel]
        return {broker: control.Executed(channel, number, bes) for broker, bes in told.items()}

    def find(self, channel: str, chosen: Callable[[int], bool]) -> list[int]:
        """The same, but nobody is told; for which BE subscriptions something was found."""
        number = self.execution[channel] = self.execution.get(channel, 0) + 1
        bes = [be for be in self.lines.get(channel, []) if self.attached[be] and chosen(be)]
        for be in bes:
            self.found[be].append(number)
        return bes


def result(be: int, execution: int, size: int = 0) -> Result:
    """A result whose payload says what it is, filled up to ``size`` bytes."""
    payload = b'[{"be":%d,"n":%d}]' % (be, execution)
    if (missing := size - len(payload) - len(b',"fill":""')) >= 0:
        payload = b'[{"be":%d,"n":%d,"fill":"%b"}]' % (be, execution, b"." * missing)
    return Result(execution, be, 1, len(payload), Raw(payload))
