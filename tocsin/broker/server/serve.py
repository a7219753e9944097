"""Listening: a broker on a real socket, until the process is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable

from tocsin.broker.server.app import create_app
from tocsin.broker.server.entrance import PATH
from tocsin.broker.server.server import BrokerServer
from tocsin.errors import SettingsError
from tocsin.http import listening as sockets
from tocsin.http.listening import HttpServer, address, allow_files, config
from tocsin.http.tls import tls
from tocsin.log import get_logger
from tocsin.settings import BrokerSettings

log = get_logger(__name__)


def bind(section: BrokerSettings) -> socket.socket:
    """A socket that holds the broker's address but does not accept yet."""
    return sockets.bind("broker", section.host, section.port)


async def run(
    section: BrokerSettings,
    *,
    ca: str = "",
    listener: socket.socket | None = None,
    listening: Callable[[str], None] | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; subscribers are then closed with 1001.

    Once it listens, its URL is logged and given to ``listening``. ``listener`` is a socket from :func:`bind`, made
    here unless given; ``ca`` is the file of a private authority that it trusts when it dials. Raises SettingsError for
    what a broker cannot begin with.
    """
    check(section)
    files = tls("broker", section.tls_certificate, section.tls_key)
    listener = listener or bind(section)
    url = address(listener, "https" if section.tls_certificate else "http")
    server = BrokerServer(section, public_url(section, listener), ca)
    allow_files("broker", section.connections)

    def listens() -> None:
        log.info("broker listens", broker=section.name, url=url, subscribers=server.url)
        if listening:
            listening(url)

    doorways = server.doorways
    options = config(create_app(server), doorways, ws=doorways.connection, **files)
    server.start()
    try:
        await HttpServer(options, listens, doorways, server.stop).serve([listener])
    finally:
        await server.stop()


def check(section: BrokerSettings) -> None:
    """Raises SettingsError for what each setting allows but no broker can begin with."""
    if not section.token:
        raise SettingsError(
            f"broker.token is empty, and the coordinator lets nobody in without: make one with "
            f"'tocsin token sign {section.name} --role broker', and set TOCSIN_BROKER_TOKEN"
        )
    if not section.data_token:
        raise SettingsError(
            f"broker.data_token is empty, and the data cluster lets nobody in without: make one with "
            f"'tocsin token add {section.name} --role broker', and set TOCSIN_BROKER_DATA_TOKEN"
        )
    if len(section.location) == 1:
        raise SettingsError(f"broker.location = {section.location} is not allowed: it must be x and y, or empty")
    for key in ("coordinator", "data"):
        url = getattr(section, key)
        if not url.startswith(("http://", "https://")):
            raise SettingsError(f"broker.{key} = {url} is not allowed: it must begin with http:// or https://")


def public_url(section: BrokerSettings, listener: socket.socket) -> str:
    """Where subscribers reach the broker."""
    if section.url:
        return section.url
    if section.host in ("0.0.0.0", "::"):
        log.warning("broker.url is not set, so subscribers are sent to this machine's loopback address")
    return address(listener, "wss" if section.tls_certificate else "ws") + PATH
