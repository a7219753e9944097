"""Listening: a head or an edge on a real socket, until the process is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import aclosing, closing
from random import SystemRandom

import msgspec

from tocsin.broker.backoff import Backoff
from tocsin.client.faults import refusal
from tocsin.client.operator import HealthProbe
from tocsin.errors import InvalidError, SettingsError, UnavailableError
from tocsin.http import listening as sockets
from tocsin.http.doorway import Doorways
from tocsin.http.listening import HttpServer, address, allow_files, config
from tocsin.http.origins import Origins
from tocsin.http.tls import tls
from tocsin.log import get_logger
from tocsin.overlay.server.access import check_access
from tocsin.overlay.server.app import create_app
from tocsin.overlay.server.channel import ChannelSource, ChannelWanted
from tocsin.overlay.server.server import OverlayServer
from tocsin.overlay.server.status import OverlayHealth
from tocsin.overlay.server.store import ReplayStore
from tocsin.overlay.server.websocket import OverlayWebSocket
from tocsin.settings.overlay import OverlaySettings
from tocsin.tasks import until_one_ends

log = get_logger(__name__)

Listening = Callable[[str], None]


async def run_head(
    section: OverlaySettings,
    *,
    ca: str = "",
    listening: Listening | None = None,
    channel: ChannelWanted | None = None,
) -> None:
    """A head, until SIGTERM or SIGINT. Once it listens, its URL is logged and given to ``listening``.

    With a ``channel``, it publishes what that finds. What can go wrong: the address is taken, a setting makes no sense,
    the replay log cannot be opened or is another head's, the channel cannot be subscribed to. Each is a TocsinError;
    any other is a fault.
    """
    check_access(section)
    with sockets.bind("overlay", section.host, section.port) as listener:
        most, most_bytes = section.replay_publications, section.replay_bytes
        store = await asyncio.to_thread(ReplayStore, section.directory, section.name, most, most_bytes)
        with closing(store):
            source = ChannelSource(channel, section.directory, ca) if channel else None
            server = OverlayServer(section, public_url(section, listener), store=store, ca=ca, source=source)
            await _serve(server, section, listener, listening)


async def run_edge(section: OverlaySettings, *, ca: str = "", listening: Listening | None = None) -> None:
    """An edge, until SIGTERM or SIGINT. It listens when it has found its head, whose name is its cluster's."""
    if not section.head:
        raise SettingsError(
            "overlay.head is empty, and an edge has a head: --set overlay.head=ws://127.0.0.1:8710, or wherever "
            "'tocsin overlay head' listens"
        )
    check_access(section)
    with sockets.bind("overlay", section.host, section.port) as listener:
        cluster = await find_head(section, ca)
        server = OverlayServer(section, public_url(section, listener), cluster=cluster, ca=ca)
        await _serve(server, section, listener, listening)


async def find_head(section: OverlaySettings, ca: str = "") -> str:
    """The name of the head at ``overlay.head``, which is asked again and again; what is no head is a SettingsError."""
    backoff, told = Backoff(SystemRandom()), ""
    async with aclosing(HealthProbe(section.head, ca=ca)) as probe:
        while True:
            try:
                answer = await probe.ask()
            except InvalidError as error:
                raise SettingsError(f"overlay.head = {error}") from None
            except UnavailableError as error:
                if str(error) != told:
                    log.warning("the head does not answer; it is waited for", reason=str(error))
                told = str(error)
            else:
                return _head_name(section, answer.content)
            await asyncio.sleep(backoff.after(0.0))


def public_url(section: OverlaySettings, listener: socket.socket) -> str:
    """Where others reach the broker."""
    if section.url:
        return section.url.rstrip("/")
    if section.host in ("0.0.0.0", "::"):
        log.warning("overlay.url is not set, so others are sent to this machine's loopback address")
    return address(listener, "wss" if section.tls_certificate else "ws")


def _head_name(section: OverlaySettings, content: bytes) -> str:
    try:
        health = msgspec.json.decode(content, type=OverlayHealth)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        refused = refusal(content)
        said = f": {refused}" if refused else ""
        raise SettingsError(f"overlay.head = {section.head} answers, but not as a head does{said}") from None
    if health.role != "head":
        raise SettingsError(f"overlay.head = {section.head} is the edge {health.broker}: name its head instead")
    if health.broker == section.name:
        raise SettingsError(f"overlay.name = {section.name} is the name of its head: --set overlay.name=NAME")
    return health.broker


async def _serve(
    server: OverlayServer, section: OverlaySettings, listener: socket.socket, listening: Listening | None
) -> None:
    files = tls("overlay", section.tls_certificate, section.tls_key)

    def listens() -> None:
        log.info("broker of the overlay listens", broker=section.name, role=server.role, url=server.url)
        if listening:
            listening(server.url)

    doorways = Doorways(section.connections)
    allow_files("overlay", section.connections)
    needs_token = bool(section.client_token or section.public_keys)
    origins = Origins("overlay", section.origins, demo=False, open=not needs_token)
    options = {"ws": OverlayWebSocket, "ws_max_size": section.message_bytes, "ws_ping_interval": 10, **files}
    uvicorn = HttpServer(config(create_app(server, origins), doorways, **options), listens, doorways)
    await until_one_ends(uvicorn.serve([listener]), server.run())
