"""What a subscriber asks the coordinator over HTTP: to be registered, and which broker it belongs to."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from tocsin.client.faults import refusal
from tocsin.errors import InvalidError, UnavailableError
from tocsin.trust import trust

Location = tuple[float, float]
T = TypeVar("T")

ANSWER_SECONDS: Final = 10.0


class UnreachableError(UnavailableError):
    """Nothing listens where the coordinator should be."""


class _Registered(msgspec.Struct):
    token: str


class _Located(msgspec.Struct):
    url: str


class _Done(msgspec.Struct):
    pass


class CoordinatorClient:
    """A coordinator at ``url``; a URL that cannot be one is an InvalidError.

    What can go wrong: nothing listens there (UnreachableError), it does not answer in time or not as a coordinator
    does (UnavailableError), or it refuses (the error it names).
    """

    def __init__(self, url: str, seconds: float = ANSWER_SECONDS, ca: str = "") -> None:
        self.url = _check_url(url)
        self._seconds, self._ca = seconds, ca

    def trust(self) -> ssl.SSLContext:
        """Whom connections to the coordinator, and to brokers it names, trust."""
        return trust(self._ca)

    async def register(self, name: str, token: str | None) -> str:
        """The token of a subscriber with this name; ``token`` is an operator's, where not everybody may register."""
        answer = await self._call("POST", "/users", token, json={"name": name})
        return self._read(answer, _Registered).token

    async def locate(self, token: str, location: Location | None) -> str:
        """The URL of the broker that is ready for the token's subscriber, who is at ``location``."""
        query = {"x": location[0], "y": location[1]} if location else {}
        answer = await self._call("GET", "/broker", token, params=query)
        return self._read(answer, _Located).url

    async def unregister(self, token: str) -> None:
        """The token's subscriber leaves for good."""
        self._read(await self._call("DELETE", "/users/me", token), _Done)

    async def _call(self, method: str, path: str, token: str | None, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A subscriber asks seldom, so that a connection kept for the next time would only cost both sides memory.
        verify = self.trust() if self.url.startswith("https:") else False
        try:
            async with httpx.AsyncClient(verify=verify, timeout=self._seconds) as client:
                return await client.request(method, self.url + path, headers=headers, **options)
        except httpx.ConnectError as error:
            raise UnreachableError(
                f"no coordinator at {self.url} ({error}); is 'tocsin coordinator' or 'tocsin up' running there?"
            ) from error
        except (httpx.HTTPError, UnicodeEncodeError) as error:
            reason = str(error) or type(error).__name__
            raise UnavailableError(f"no answer from the coordinator at {self.url} ({reason})") from error

    def _read(self, answer: httpx.Response, kind: type[T]) -> T:
        if answer.is_success:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                return msgspec.json.decode(answer.content, type=kind)
        elif error := refusal(answer.content):
            raise error
        said = f"{self.url} answered with status {answer.status_code}, but not as a coordinator does"
        raise UnavailableError(f"{said}; is the URL right?")


async def register(coordinator: str, name: str, token: str | None = None, *, ca: str = "") -> str:
    """Registers a subscriber with the coordinator at this URL, and gives its token: keep it, it says who you are.

    ``token`` is an operator's, needed where ``coordinator.registration`` is not "open"; ForbiddenError or
    UnauthorizedError say so. A name that cannot be one is an InvalidError. ``ca`` is as for :func:`tocsin.connect`.
    """
    return await CoordinatorClient(coordinator, ca=ca).register(name, token)


async def unregister(coordinator: str, token: str, *, ca: str = "") -> None:
    """The token's subscriber leaves for good: all it subscribed to ends, on every broker, and the token is worthless.

    Whoever registers under the name later is somebody else. To leave twice is no error.
    """
    await CoordinatorClient(coordinator, ca=ca).unregister(token)


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(httpx.URL(url).host) and (parts.port or 1) > 0
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise InvalidError(f"{url!r} is no coordinator's URL; one looks like http://localhost:8700")
    return url.rstrip("/")
