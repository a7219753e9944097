"""What the data cluster has done while people lived, asked as an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.client.operator import Operator
from tocsin.crowd.shortfall import Strain

# Of so many executions are the results asked for in one call.
_EXECUTIONS: Final = 20


async def count_executions(operator: Operator) -> dict[str, int]:
    """How often each channel has run."""
    return {channel["name"]: channel["execution"] for channel in await operator.channels()}


async def find_owed(
    operator: Operator, after: Mapping[str, int], until: Mapping[str, int]
) -> dict[int, frozenset[int]]:
    """Per subscription, which executions found something, of those after and up to these numbers."""
    found: dict[int, set[int]] = {}
    for channel, last in until.items():
        for first in range(after[channel] + 1, last + 1, _EXECUTIONS):
            for result in await operator.results(channel, first, min(first + _EXECUTIONS - 1, last)):
                found.setdefault(result.be, set()).add(result.execution)
    return {be: frozenset(executions) for be, executions in found.items()}


async def measure_strain(operator: Operator) -> Strain:
    """Whether the data cluster keeps up."""
    health, channels = await operator.health(), await operator.channels()
    return Strain(
        max((feed.lag_seconds for feed in health.feeds), default=0.0),
        sum(channel["execution"] for channel in channels),
        sum(channel["missed"] for channel in channels),
    )
