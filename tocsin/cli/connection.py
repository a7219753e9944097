"""How commands reach a running data cluster: the options they share, and calls whose failures are errors of ours."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from tocsin.errors import BusyError, StatementError, TocsinError, UnavailableError
from tocsin.settings import Settings

if TYPE_CHECKING:
    import httpx

    from tocsin.model.messages import Problem

ServerOption = Annotated[
    str | None,
    typer.Option("--server", envvar="TOCSIN_SERVER", metavar="URL", help="The data cluster; else the one in settings"),
]
TokenOption = Annotated[
    str | None, typer.Option("--token", envvar="TOCSIN_TOKEN", metavar="TOKEN", help="The bearer token to show")
]
# Statements are checked by Spark, which may be busy with a channel.
ANSWER_SECONDS: Final = 120.0


class RemoteError(TocsinError):
    """An error of the server, with its own code and status."""

    def __init__(self, problem: Problem, status: int) -> None:
        self.problem, self.code, self.status = problem, problem.code, status
        super().__init__(problem.message)


class Server(AbstractContextManager["Server"]):
    """A data cluster at ``url``. Every call gives the body of a success, or raises a TocsinError."""

    def __init__(self, url: str, token: str | None, transport: httpx.BaseTransport | None = None) -> None:
        import httpx

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url
        self._client = httpx.Client(base_url=url, headers=headers, timeout=ANSWER_SECONDS, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def get(self, path: str, **query: str | int) -> bytes:
        """What is at ``path``."""
        return _content(self._call("GET", path, params=query))

    def post(self, path: str, content: Any, content_type: str) -> bytes:
        """The answer to ``content``: text, bytes or an open file."""
        return _content(self._call("POST", path, content=content, headers={"Content-Type": content_type}))

    def health(self) -> bytes:
        """How the server is; one that is starting answers too, though with a status for load balancers."""
        response = self._call("GET", "/health")
        starting = response.status_code == UnavailableError.status and b'"status"' in response.content
        return response.content if starting else _content(response)

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        import httpx

        try:
            return self._client.request(method, path, **options)
        except httpx.InvalidURL as error:
            raise UnavailableError(f"{self.url} is not a URL: {error}") from None
        except httpx.HTTPError as error:
            raise UnavailableError(
                f"no answer from {self.url} ({str(error) or type(error).__name__}); "
                "is 'tocsin data' running there? --server names another"
            ) from error


def connect(settings: Settings, server: str | None, token: str | None) -> Server:
    """The server meant by the options; without one, that of the settings."""
    return Server(server or _default(settings), token)


def _default(settings: Settings) -> str:
    if settings.data.port == 0:
        return _noted(settings.data.directory / "address")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.data.host, settings.data.host)
    return f"http://[{host}]:{settings.data.port}" if ":" in host else f"http://{host}:{settings.data.port}"


def _noted(file: Path) -> str:
    """The address that a server on any free port has written down."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        raise UnavailableError(
            f"data.port = 0, and no server has written its address to {file}; start 'tocsin data', or use --server"
        ) from None


def _content(response: httpx.Response) -> bytes:
    if response.is_success:
        return response.content
    raise _error(response)


def _error(response: httpx.Response) -> TocsinError:
    import msgspec

    from tocsin.model.messages import Failure

    try:
        problem = msgspec.json.decode(response.content, type=Failure).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        where = response.request.url
        return UnavailableError(f"{where} answered with status {response.status_code}, but not as a data cluster does")
    if problem.code == StatementError.code:
        return StatementError(problem.message, line=problem.line or 0, column=problem.column or 0)
    if problem.code == BusyError.code:
        return BusyError(problem.message, retry_after=problem.retry_after or 1.0)
    return RemoteError(problem, response.status_code)
