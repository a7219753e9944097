"""What operators and administrators ask of a network over HTTP, for programs: the demo, experiments, scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx
import msgspec

from tocsin.client.faults import fault
from tocsin.coordinator.answers import NetworkStatus, Proposal
from tocsin.errors import UnavailableError
from tocsin.model.messages import (
    Applied,
    Failure,
    Health,
    Listed,
    Published,
    Result,
    ResultsFound,
    StatementOutcome,
)
from tocsin.trust import trust

T = TypeVar("T")

# Statements are checked by Spark, which may just have started, and may have to share the machine.
ANSWER_SECONDS: Final = 600.0


class Operator(AbstractAsyncContextManager["Operator"]):
    """Calls to a data cluster and a coordinator, with a token that both know.

    What can go wrong: a server refuses (the error it names), or does not answer as one does (UnavailableError).

    Args:
        data: the data cluster's URL; may be empty if nothing is asked of it.
        coordinator: the coordinator's; as well.
        seconds: how long to wait for an answer.
        ca: the file of a private authority that is trusted.
    """

    def __init__(
        self, data: str, coordinator: str, token: str, *, seconds: float = ANSWER_SECONDS, ca: str = ""
    ) -> None:
        self._data, self._coordinator = data.rstrip("/"), coordinator.rstrip("/")
        secure = any(url.startswith("https:") for url in (data, coordinator))
        # The machine's proxy has nothing to do with servers that are named by their addresses.
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"},
            timeout=seconds,
            trust_env=False,
            verify=trust(ca) if secure else False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def apply(self, text: bytes) -> list[StatementOutcome]:
        """Carries out the statements of an application."""
        headers = {"Content-Type": "text/sql"}
        return (await self._ask(Applied, "POST", f"{self._data}/apply", content=text, headers=headers)).outcomes

    async def load(self, dataset: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Fills a reference dataset."""
        await self._call("POST", f"{self._data}/datasets/{dataset}/load", json=rows)

    async def publish(self, feed: str, records: Sequence[Mapping[str, Any]]) -> Published:
        """Publishes records straight to the data cluster; what became of them, once they are stored."""
        return await self._ask(Published, "POST", f"{self._data}/feeds/{feed}", json=records)

    async def health(self) -> Health:
        """How the data cluster is doing."""
        return await self._ask(Health, "GET", f"{self._data}/health")

    async def channels(self) -> list[dict[str, Any]]:
        """The channels, with how often each has run."""
        return (await self._ask(Listed, "GET", f"{self._data}/channels")).items

    async def results(self, channel: str, first: int, last: int) -> list[Result]:
        """What the executions ``first`` to ``last`` of a channel found."""
        wanted = {"channel": channel, "first": first, "last": last}
        return (await self._ask(ResultsFound, "POST", f"{self._data}/results", json=wanted)).results

    async def status(self) -> NetworkStatus:
        """How the brokers stand."""
        return await self._ask(NetworkStatus, "GET", f"{self._coordinator}/status")

    async def plan(self) -> Proposal:
        """What the coordinator would do."""
        return await self._ask(Proposal, "GET", f"{self._coordinator}/plan")

    async def balance(self, on: bool) -> None:
        """Lets the network balance itself, or not."""
        await self._call("PUT", f"{self._coordinator}/balancing", json={"on": on})

    async def _ask(self, kind: type[T], method: str, url: str, **options: Any) -> T:
        body = await self._call(method, url, **options)
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise UnavailableError(f"{url} answered with something else than was asked for ({error})") from None

    async def _call(self, method: str, url: str, **options: Any) -> bytes:
        try:
            response = await self._client.request(method, url, **options)
        except httpx.HTTPError as error:
            raise UnavailableError(f"no answer from {url} ({str(error) or type(error).__name__})") from None
        if response.is_success:
            return response.content
        try:
            problem = msgspec.json.decode(response.content, type=Failure).error
        except msgspec.DecodeError:
            raise UnavailableError(f"{url} answered with status {response.status_code}") from None
        raise fault(problem.code, problem.message)
