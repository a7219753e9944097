"""The demo's calls to the data cluster and the coordinator, as an administrator and an operator."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx
import msgspec

from tocsin.coordinator.answers import NetworkStatus, Proposal
from tocsin.crowd.shortfall import Strain
from tocsin.errors import UnavailableError
from tocsin.local.network import TOKEN
from tocsin.model.messages import Applied, Failure, Health, Listed, ResultsFound, StatementOutcome

T = TypeVar("T")
# Statements are checked by Spark, which has just started and may have to share the machine.
_ANSWER_SECONDS: Final = 600.0
_EXECUTIONS: Final = 20


class DemoCalls(AbstractAsyncContextManager["DemoCalls"]):
    """Calls to two servers. A refusal, or no answer, is an UnavailableError with the server's own words."""

    def __init__(self, data: str, coordinator: str) -> None:
        self._data, self._coordinator = data, coordinator
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._client = httpx.AsyncClient(headers=headers, timeout=_ANSWER_SECONDS, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def apply(self, text: bytes) -> list[StatementOutcome]:
        """Carries out the statements of an application."""
        body = await self._call("POST", f"{self._data}/apply", content=text, headers={"Content-Type": "text/sql"})
        return msgspec.json.decode(body, type=Applied).outcomes

    async def load(self, dataset: str, rows: list[dict[str, Any]]) -> None:
        """Fills a reference dataset."""
        await self._call("POST", f"{self._data}/datasets/{dataset}/load", json=rows)

    async def executions(self) -> dict[str, int]:
        """How often each channel has run."""
        return {item["name"]: item["execution"] for item in await self._list("channels")}

    async def strain(self) -> Strain:
        """Whether the data cluster keeps up."""
        health = msgspec.json.decode(await self._call("GET", f"{self._data}/health"), type=Health)
        channels = await self._list("channels")
        return Strain(
            max((feed.lag_seconds for feed in health.feeds), default=0.0),
            sum(channel["execution"] for channel in channels),
            sum(channel["missed"] for channel in channels),
        )

    async def found(self, after: dict[str, int], until: dict[str, int]) -> dict[int, frozenset[int]]:
        """Per subscription, which executions found something, of those after and up to these numbers."""
        found: dict[int, set[int]] = {}
        for channel, last in until.items():
            for first in range(after[channel] + 1, last + 1, _EXECUTIONS):
                for be, execution in await self._results(channel, first, min(first + _EXECUTIONS - 1, last)):
                    found.setdefault(be, set()).add(execution)
        return {be: frozenset(executions) for be, executions in found.items()}

    async def status(self) -> NetworkStatus:
        """How the brokers stand."""
        return msgspec.json.decode(await self._call("GET", f"{self._coordinator}/status"), type=NetworkStatus)

    async def plan(self) -> Proposal:
        """What the coordinator would do."""
        return msgspec.json.decode(await self._call("GET", f"{self._coordinator}/plan"), type=Proposal)

    async def balance(self, on: bool) -> None:
        """Lets the network balance itself, or not."""
        await self._call("PUT", f"{self._coordinator}/balancing", json={"on": on})

    async def _results(self, channel: str, first: int, last: int) -> Iterable[tuple[int, int]]:
        wanted = {"channel": channel, "first": first, "last": last}
        body = await self._call("POST", f"{self._data}/results", json=wanted)
        results = msgspec.json.decode(body, type=ResultsFound).results
        return [(result.be, result.execution) for result in results]

    async def _list(self, what: str) -> list[dict[str, Any]]:
        return msgspec.json.decode(await self._call("GET", f"{self._data}/{what}"), type=Listed).items

    async def _call(self, method: str, url: str, **options: Any) -> bytes:
        try:
            response = await self._client.request(method, url, **options)
        except httpx.HTTPError as error:
            raise UnavailableError(f"no answer from {url} ({str(error) or type(error).__name__})") from None
        if response.is_success:
            return response.content
        try:
            raise UnavailableError(msgspec.json.decode(response.content, type=Failure).error.message)
        except msgspec.DecodeError:
            raise UnavailableError(f"{url} answered with status {response.status_code}") from None
