"""Dialling another of our servers to stay connected: a WebSocket with a token, and what is said when it fails."""

from __future__ import annotations

import logging
from typing import Final

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tocsin.model.messages import read_problem
from tocsin.trust import trust

GOING_AWAY: Final = 1001
"""Why a peer is left by who stops; an error would be given as the reason otherwise."""

_OPEN_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 1.0
# It would tell every frame and header, with the tokens in them.
_quiet = logging.getLogger("tocsin.dialling.websockets")
_quiet.setLevel(logging.ERROR)


def dial(
    url: str,
    token: str,
    *,
    ca: str,
    ping_seconds: float,
    most_bytes: int | None = None,
    most_frames: int | None = 16,
) -> connect:
    """A connection to open, in a block of ``async with``: lost when three pings in a row are not answered.

    Args:
        url: where to; ``http`` and ``ws`` mean the same.
        token: shown in the handshake; empty where none is needed.
        ca: the file of a private authority that is trusted.
        ping_seconds: how often the other side is asked whether it is there.
        most_bytes: how long a message of the other side may be.
        most_frames: how many of its frames may wait here before no more are read.
    """
    url = socket_url(url)
    return connect(
        url,
        ssl=trust(ca) if url.startswith("wss:") else None,
        additional_headers={"Authorization": f"Bearer {token}"} if token else {},
        compression=None,
        max_size=most_bytes,
        max_queue=most_frames,
        open_timeout=_OPEN_SECONDS,
        ping_interval=ping_seconds,
        ping_timeout=3 * ping_seconds,
        close_timeout=_CLOSE_SECONDS,
        # The machine's proxy has nothing to do with servers that settings name.
        proxy=None,
        logger=_quiet,
    )


def check_trust(url: str, ca: str) -> None:
    """Raises SettingsError if ``url`` needs authorities, and those in ``ca`` cannot be used: at the start, rather than
    in a log again and again."""
    if socket_url(url).startswith("wss:"):
        trust(ca)


def socket_url(url: str) -> str:
    """A server's URL, as WebSockets are dialled."""
    return url.rstrip("/").replace("http", "ws", 1) if url.startswith("http") else url.rstrip("/")


def tell_why(error: Exception) -> str:
    """Why a connection was not opened, or was lost, in the words of the other side if it has said any."""
    match error:
        case InvalidStatus():
            return f"refused with status {error.response.status_code}: {explain(error.response.body)}"
        case ConnectionClosed():
            return f"closed: {error}"
    return str(error) or type(error).__name__


def explain(body: bytes | bytearray | None) -> str:
    """The sentence with which a server of ours refuses."""
    problem = read_problem(body)
    return problem.message if problem else "no reason was given"
