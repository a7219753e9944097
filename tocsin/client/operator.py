"""What operators and administrators ask of a network over HTTP: an :class:`Operator` for programs that do other things
meanwhile (the demo, experiments, scripts), :class:`ServerCalls` for those that wait (commands, measurements), and a
:class:`HealthProbe` for who waits for a server to be there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx
import msgspec

from tocsin.client.faults import refusal
from tocsin.coordinator.answers import NetworkStatus, Proposal
from tocsin.errors import InvalidError, UnavailableError
from tocsin.model.messages import (
    Applied,
    Health,
    Listed,
    Published,
    Result,
    ResultsFound,
    StatementOutcome,
)
from tocsin.model.slices import SlicesStatus
from tocsin.trust import trust

T = TypeVar("T")

# Statements are checked by Spark, which may just have started, and may have to share the machine.
ANSWER_SECONDS: Final = 600.0


class Operator(AbstractAsyncContextManager["Operator"]):
    """Calls to a data cluster and a coordinator.

    What can go wrong: a server refuses (the error it names), or does not answer as one does (UnavailableError).

    Args:
        data: the data cluster's URL; may be empty if nothing is asked of it.
        coordinator: the coordinator's; as well.
        token: what both are shown, unless the data cluster has a ``data_token`` of its own.
        seconds: how long to wait for an answer.
        ca: the file of a private authority that is trusted.
    """

    def __init__(
        self,
        data: str,
        coordinator: str,
        token: str,
        *,
        data_token: str = "",
        seconds: float = ANSWER_SECONDS,
        ca: str = "",
    ) -> None:
        self._data, self._coordinator = data.rstrip("/"), coordinator.rstrip("/")
        self._token, self._data_token = token, data_token or token
        secure = any(url.startswith("https:") for url in (data, coordinator))
        # The machine's proxy has nothing to do with servers that are named by their addresses.
        self._client = httpx.AsyncClient(
            auth=self._authorize,
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

    async def slices(self) -> SlicesStatus:
        """Who processes which slices of the data cluster's feeds."""
        return await self._ask(SlicesStatus, "GET", f"{self._data}/slices")

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

    def _authorize(self, request: httpx.Request) -> httpx.Request:
        of_data = self._data and str(request.url).startswith(f"{self._data}/")
        request.headers["Authorization"] = f"Bearer {self._data_token if of_data else self._token}"
        return request

    async def _ask(self, kind: type[T], method: str, url: str, **options: Any) -> T:
        return _read(kind, url, await self._call(method, url, **options))

    async def _call(self, method: str, url: str, **options: Any) -> bytes:
        try:
            return _content(await self._client.request(method, url, **options))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _no_answer(url, error) from None


class HealthProbe:
    """Asks a server how it is, again and again, whatever it answers.

    Args:
        url: the server's; that of its WebSocket will do.
        token: shown with every call, to be told all of it; empty where none is needed.
        seconds: how long to wait for an answer.
        ca: the file of a private authority that is trusted.
    """

    def __init__(self, url: str, token: str = "", *, seconds: float = 10.0, ca: str = "") -> None:
        self.url, self._called = url.rstrip("/"), http_url(url)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=seconds,
            trust_env=False,
            verify=trust(ca) if self._called.startswith("https:") else False,
        )

    async def ask(self) -> httpx.Response:
        """What it says, with whatever status. That nobody answers is an UnavailableError; where nobody ever will, as
        the URL is none, an InvalidError."""
        try:
            return await self._client.get(f"{self._called}/health")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InvalidError(f"{self.url} is not a URL: {error}") from None
        except httpx.HTTPError as error:
            raise _no_answer(self.url, error) from error

    async def aclose(self) -> None:
        """Closes the connection."""
        await self._client.aclose()


class ServerCalls(AbstractContextManager["ServerCalls"]):
    """Calls to one server, each waited for.

    What can go wrong: as with an :class:`Operator`, and the URL may be none (InvalidError).

    Args:
        url: the server's; that of its WebSocket will do.
        token: shown with every call, if there is one.
        seconds: how long to wait for an answer.
        ca: the file of a private authority that is trusted.
        hint: what a person can do if nobody answers.
        proxied: whether a proxy that the environment names is used, as a person at a terminal expects.
        transport: what carries the calls, if not a network.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        seconds: float = ANSWER_SECONDS,
        ca: str = "",
        hint: str = "",
        proxied: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url, self._called, self._hint = url.rstrip("/"), http_url(url), hint
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=seconds,
            trust_env=proxied,
            verify=trust(ca) if proxied or self._called.startswith("https:") else False,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def ask(self, kind: type[T], method: str, path: str, **options: Any) -> T:
        """The answer to a call that succeeds."""
        return _read(kind, self.url + path, self.call(method, path, **options))

    def call(self, method: str, path: str, **options: Any) -> bytes:
        """The body of the answer to a call that succeeds."""
        return _content(self.request(method, path, **options))

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The answer, whatever it is; that there is none is an UnavailableError, that there never will be an
        InvalidError."""
        try:
            return self._client.request(method, self._called + path, **options)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InvalidError(f"{self.url} is not a URL: {error}") from None
        except httpx.HTTPError as error:
            raise _no_answer(self.url, error, self._hint) from error


def http_url(url: str) -> str:
    """Where a server is called that is known by this URL, of calls or of its WebSocket."""
    return url.rstrip("/").replace("ws", "http", 1) if url.startswith("ws") else url.rstrip("/")


def _content(response: httpx.Response) -> bytes:
    if response.is_success:
        return response.content
    error = refusal(response.content)
    raise error or UnavailableError(f"{response.request.url} answered with status {response.status_code}")


def _read(kind: type[T], url: str, body: bytes) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnavailableError(f"{url} answered with something else than was asked for ({error})") from None


def _no_answer(url: str, error: httpx.HTTPError | httpx.InvalidURL, hint: str = "") -> UnavailableError:
    said = f"no answer from {url} ({str(error) or type(error).__name__})"
    return UnavailableError(f"{said}; {hint}" if hint else said)
