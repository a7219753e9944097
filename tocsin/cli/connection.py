"""How commands reach a running server: the options they share, and calls whose failures are errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from tocsin.cli.waiting import SOON_SECONDS, Reasons, Tell, tell, telling
from tocsin.errors import BusyError, StatementError, TocsinError, UnauthorizedError, UnavailableError
from tocsin.settings import Settings

if TYPE_CHECKING:
    import httpx

    from tocsin.model.messages import ProblemDetails

ServerOption = Annotated[
    str | None,
    typer.Option("--server", envvar="TOCSIN_SERVER", metavar="URL", help="The data cluster; else the one in settings"),
]
CoordinatorOption = Annotated[
    str | None,
    typer.Option(
        "--coordinator", envvar="TOCSIN_COORDINATOR", metavar="URL", help="The coordinator; else the one in settings"
    ),
]
TokenOption = Annotated[
    str | None, typer.Option("--token", envvar="TOCSIN_TOKEN", metavar="TOKEN", help="The bearer token to show")
]
# Statements are checked by Spark, which may be busy with a channel.
ANSWER_SECONDS: Final = 120.0
_HEALTH_SECONDS: Final = 1.0


class RemoteError(TocsinError):
    """An error of the server, with its own code and status."""

    def __init__(self, problem: ProblemDetails, status: int) -> None:
        self.problem, self.code, self.status = problem, problem.code, status
        super().__init__(problem.message)


class RefusedStatementError(StatementError):
    """A statement that the server refused, with all it said of it."""

    def __init__(self, problem: ProblemDetails) -> None:
        self.problem = problem
        super().__init__(problem.message, line=problem.line or 0, column=problem.column or 0)


class RemoteServer(AbstractContextManager["RemoteServer"]):
    """The server at ``url``. Every call gives the body of a success, or raises a TocsinError.

    ``ca`` is the file of a private authority that is trusted, ``program`` the command that runs such a server,
    ``option`` the one that names another, ``tokens`` the command that makes its tokens. Who waits for an answer for
    longer than a moment is told so.
    """

    program, option, tokens = "tocsin data", "--server", "tocsin token add"
    starting = "is starting: Spark takes a while to be up, and answers come after that"

    def __init__(
        self,
        url: str,
        token: str | None,
        transport: httpx.BaseTransport | None = None,
        ca: str = "",
        *,
        tell: Tell = tell,
        soon: float = SOON_SECONDS,
    ) -> None:
        from tocsin.client.operator import ServerCalls

        self.url, self.ca = url, ca
        self._reasons, self._soon, self._doing = Reasons(tell), soon, ""
        hint = f"is '{self.program}' or 'tocsin up' running there? {self.option} names another"
        self._calls = ServerCalls(
            url, token, seconds=ANSWER_SECONDS, ca=ca, hint=hint, proxied=True, transport=transport
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.close()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """While entered, who waits is told that the server does this."""
        self._doing = what
        try:
            yield
        finally:
            self._doing = ""

    def get(self, path: str, **query: str | int) -> bytes:
        """What is at ``path``."""
        return self._content(self._call("GET", path, params=query))

    def post(self, path: str, content: Any, content_type: str) -> bytes:
        """The answer to ``content``: text, bytes or an open file."""
        return self._content(self._call("POST", path, content=content, headers={"Content-Type": content_type}))

    def put(self, path: str, content: bytes) -> bytes:
        """The answer to ``content``, which is JSON."""
        return self._content(self._call("PUT", path, content=content, headers={"Content-Type": "application/json"}))

    def delete(self, path: str) -> bytes:
        """The answer when what is at ``path`` is gone."""
        return self._content(self._call("DELETE", path))

    def health(self) -> bytes:
        """How the server is; one that is starting answers too, though with a status for load balancers."""
        response = self._call("GET", "/health")
        starting = response.status_code == UnavailableError.status and b'"status"' in response.content
        return response.content if starting else self._content(response)

    def _why(self) -> str:
        """Why there is no answer yet, as far as the server says."""
        try:
            health = self._calls.request("GET", "/health", timeout=_HEALTH_SECONDS).content
        except UnavailableError:
            return f"{self.url} does not answer yet; it is waited for up to {ANSWER_SECONDS:g} s"
        if b'"starting"' in health:
            return f"{self.url} {self.starting}; it is waited for up to {ANSWER_SECONDS:g} s"
        return f"{self.url} {self._doing or 'is working on it'}; it is waited for up to {ANSWER_SECONDS:g} s"

    def _content(self, response: httpx.Response) -> bytes:
        if response.is_success:
            return response.content
        raise _error(response, self.tokens)

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        with telling(self._why, self._reasons, self._soon):
            return self._calls.request(method, path, **options)


class RemoteCoordinator(RemoteServer):
    """As :class:`RemoteServer`, of a coordinator."""

    program, option, tokens = "tocsin coordinator", "--coordinator", "tocsin token sign"
    starting = "is starting"


def connect(settings: Settings, server: str | None, token: str | None) -> RemoteServer:
    """The data cluster meant by the options; without one, that of the settings."""
    data = settings.data
    scheme = "https" if data.tls_certificate else "http"
    default = local_url(data.host, data.port, scheme) if data.port else ""
    return RemoteServer(server or default or _read_address(RemoteServer, data.directory), token, ca=settings.tls.ca)


def connect_coordinator(settings: Settings, url: str | None, token: str | None) -> RemoteCoordinator:
    """The coordinator meant by the options; without one, that of the settings."""
    its = settings.coordinator
    scheme = "https" if its.tls_certificate else "http"
    default = local_url(its.host, its.port, scheme) if its.port else ""
    return RemoteCoordinator(
        url or default or _read_address(RemoteCoordinator, its.directory), token, ca=settings.tls.ca
    )


def is_overlay(url: str) -> bool:
    """Whether this is how the brokers of a content-based overlay are named."""
    return url.startswith(("ws://", "wss://"))


def local_url(host: str, port: int, scheme: str = "http") -> str:
    """The URL by which this machine reaches a server that listens there."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _read_address(kind: type[RemoteServer], directory: Path) -> str:
    """The address that a server on any free port has written down."""
    file = directory / "address"
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        section = kind.program.rpartition(" ")[2]
        raise UnavailableError(
            f"{section}.port = 0, and no server has written its address to {file}; "
            f"start '{kind.program}', or use {kind.option}"
        ) from None


def _error(response: httpx.Response, tokens: str) -> TocsinError:
    import msgspec

    from tocsin.model.messages import read_problem

    problem = read_problem(response.content)
    if problem is None:
        where = response.request.url
        return UnavailableError(
            f"{where} answered with status {response.status_code}, but not as a server of Tocsin does"
        )
    if problem.code == StatementError.code:
        return RefusedStatementError(problem)
    if problem.code == BusyError.code:
        return BusyError(problem.message, retry_after=problem.retry_after or 1.0)
    if problem.code == UnauthorizedError.code:
        problem = msgspec.structs.replace(problem, message=_explain_unauthorized(response, problem.message, tokens))
    return RemoteError(problem, response.status_code)


def _explain_unauthorized(response: httpx.Response, message: str, tokens: str) -> str:
    """What to do about a token, in the words of the command line."""
    if "Authorization" in response.request.headers:
        return f"{message} (the token is that of --token or TOCSIN_TOKEN)"
    return f"this needs a token: give one with --token or TOCSIN_TOKEN; '{tokens}' makes them"
