"""What a test writes down while it runs, and how it is judged in the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx

from tests.network.checker import Holding, Kind, Run, Seen, Verdict, check, digest
from tests.waiting import SECONDS, until_async

_LATEST: Final = 1 << 40
# To look through all notes takes a while, in which those who wait for them must not be kept.
_PAUSE: Final = 0.5


@dataclass
class Record:
    """Who held what, whose program ran, and every note as its application saw it, in that order."""

    channels: dict[int, str] = field(default_factory=dict)
    holdings: list[Holding] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def held(self, subscriber: str, subscription: int, channel: str, since: int) -> None:
        """A subscription was confirmed. One that is held already is not held twice."""
        self.channels[subscription] = channel
        if self._open(subscriber, subscription) is None:
            self.holdings.append(Holding(subscriber, subscription, since))

    def given_up(self, subscriber: str, subscription: int) -> None:
        """A subscription was given up: what was seen until now is all there may be."""
        holding = self._open(subscriber, subscription)
        assert holding is not None
        until = max([holding.since, *self.executions(subscriber, subscription)])
        self.holdings[self.holdings.index(holding)] = replace(holding, until=until)

    def since(self, subscriber: str, subscription: int) -> int:
        """After which execution a subscription begins that is held now."""
        holding = self._open(subscriber, subscription)
        assert holding is not None
        return holding.since

    def executions(self, subscriber: str, subscription: int) -> list[int]:
        """What was seen of a subscription."""
        return [n.execution for n in self.seen if (n.subscriber, n.subscription) == (subscriber, subscription)]

    def _open(self, subscriber: str, subscription: int) -> Holding | None:
        mine = (h for h in self.holdings if (h.subscriber, h.subscription) == (subscriber, subscription))
        return next((holding for holding in mine if holding.until is None), None)


async def judge(record: Record, data: httpx.Client, last: str, seconds: float = SECONDS) -> Verdict:
    """Waits until the data cluster has found the last records and they were delivered, or should have been; judges.

    ``data`` calls the data cluster, ``seconds`` is how long each of the two may take.
    """
    results = await until_async(
        lambda: asyncio.to_thread(_complete, record, data, last), f"results of {last}", seconds, _PAUSE
    )
    produced = _produced(results)

    async def delivered() -> bool:
        return not check(produced, record.holdings, record.runs, record.seen).count(Kind.LOST)

    with contextlib.suppress(AssertionError):
        await until_async(delivered, "delivery of everything", seconds, _PAUSE)
    return check(produced, record.holdings, record.runs, record.seen)


def _complete(record: Record, data: httpx.Client, last: str) -> list[dict[str, Any]]:
    """All results for what was held, or none as long as the last records were not found for everything."""
    results = list(_results(record, data))
    finished = {result["be"] for result in results if any(row["id"].startswith(last) for row in result["payload"])}
    return results if finished >= record.channels.keys() else []


def _results(record: Record, data: httpx.Client) -> Iterator[dict[str, Any]]:
    first = min((holding.since for holding in record.holdings), default=0) + 1
    for channel in sorted(set(record.channels.values())):
        ids = [number for number, its in record.channels.items() if its == channel]
        next_one = first
        while next_one <= _LATEST:
            question = {"channel": channel, "first": next_one, "last": _LATEST, "ids": ids}
            answer = data.post("/results", json=question)
            assert answer.status_code == 200, answer.text
            yield from answer.json()["results"]
            next_one = answer.json()["upto"] + 1


def _produced(results: Iterable[dict[str, Any]]) -> dict[int, dict[int, str]]:
    produced: dict[int, dict[int, str]] = defaultdict(dict)
    for result in results:
        produced[result["be"]][result["execution"]] = digest(result["payload"])
    return produced
