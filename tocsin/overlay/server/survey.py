"""What all brokers of an overlay say of themselves, found from any one of them by their links."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import msgspec

from tocsin.client.operator import ServerCalls
from tocsin.errors import TocsinError, UnauthorizedError, UnavailableError
from tocsin.overlay.server.status import OverlayFigures

_SECONDS: Final = 5.0
_HINT: Final = "is 'tocsin overlay head' or 'tocsin overlay edge' running there? --url names another"


class Survey(NamedTuple):
    """Brokers, the one that was asked first, and what is wrong with them or those that did not answer."""

    brokers: list[OverlayFigures]
    problems: list[str]


def survey(url: str, token: str = "", *, ca: str = "") -> Survey:
    """All that can be reached. If the first broker cannot, that is an UnavailableError, or an UnauthorizedError."""
    first = _ask(url, token, ca)
    known, problems, waiting = {first.broker: first}, list(_problems(first)), deque([first])
    while waiting:
        for link in waiting.popleft().links:
            if link.name in known:
                continue
            try:
                found = known[link.name] = _ask(link.url, token, ca)
            except TocsinError as error:
                problems.append(f"{link.name}: {error}")
                continue
            problems += _problems(found)
            waiting.append(found)
    return Survey(list(known.values()), problems)


def _problems(figures: OverlayFigures) -> list[str]:
    return [f"{figures.broker}: {problem}" for problem in figures.problems]


def _ask(url: str, token: str, ca: str) -> OverlayFigures:
    with ServerCalls(url, token or None, seconds=_SECONDS, ca=ca, hint=_HINT) as calls:
        answer = calls.request("GET", "/status")
    if answer.status_code == UnauthorizedError.status:
        raise UnauthorizedError(f"{url} needs the overlay's clients' token: give it with --token or TOCSIN_TOKEN")
    try:
        return msgspec.json.decode(answer.content, type=OverlayFigures)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UnavailableError(f"{url} answers, but not as a broker of an overlay does; --url names another") from None
