"""A channel that a head subscribes to as any client does, and whose rows it publishes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from tocsin.broker.backoff import Backoff
from tocsin.client.coordinator import CoordinatorClient
from tocsin.client.note import Gap, Note
from tocsin.client.rules import Rules
from tocsin.client.subscriber import connect
from tocsin.errors import (
    ConflictError,
    ForbiddenError,
    StorageError,
    TocsinError,
    UnauthorizedError,
    UnavailableError,
)
from tocsin.log import get_logger
from tocsin.overlay.head import Head
from tocsin.overlay.rows import ChannelRows
from tocsin.overlay.server.driver import OverlayDriver
from tocsin.overlay.server.writer import LogWriter
from tocsin.private import make_private

log = get_logger(__name__)

TOKEN_FILE: Final = "channel.token"
_HINT: Final = "give the head a subscriber's token with --channel-token or TOCSIN_CHANNEL_TOKEN"


@dataclass(frozen=True)
class ChannelWanted:
    """Which channel a head publishes.

    Args:
        channel: its name.
        coordinator: the coordinator's URL.
        parameters: of the channel.
        token: a subscriber's; without one the head registers under its own name, and keeps the token in its directory.
        rules: how patient the connection is.
    """

    channel: str
    coordinator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    token: str = ""
    rules: Rules = field(default_factory=Rules)


class ChannelSource:
    """Has a head publish what a channel finds.

    A note is acknowledged when all its rows are stored. So what was told to a head that crashed comes again, and rows
    that are stored are dropped by their ids: nothing is lost, nothing twice.

    What can go wrong: there is no coordinator yet, or the subscription ends later: it is tried again for ever, and
    ``problems`` say why. The channel does not exist, or the token is not accepted: at first that ends the head, which
    was started with a mistake. Rows that cannot be publications are left out, and counted among the problems. Results
    that are not kept any more are logged: the head was away for too long.
    """

    def __init__(self, wanted: ChannelWanted, directory: Path, ca: str) -> None:
        self._wanted, self._file, self._ca = wanted, directory / TOKEN_FILE, ca
        self._subscribed, self._failure = False, ""
        self._rows: ChannelRows | None = None
        self._stored = asyncio.Event()

    @property
    def problems(self) -> list[str]:
        """Sentences for an operator."""
        problems = [f"the channel {self._wanted.channel} is not followed: {self._failure}"] if self._failure else []
        if self._rows and self._rows.refused:
            rows = f"{self._rows.refused:,} rows of the channel {self._wanted.channel} cannot be publications"
            problems.append(f"{rows}: {self._rows.reason}")
        return problems

    def stored(self) -> None:
        """The head has stored something."""
        self._stored.set()

    async def run(self, driver: OverlayDriver, writer: LogWriter) -> None:
        """Follows the channel for ever."""
        assert isinstance(driver.core, Head)
        backoff, loop = Backoff(SystemRandom()), asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._follow(driver, driver.core, writer)
                reason = "the subscription ended"
            except UnavailableError as error:
                reason = str(error)
            except TocsinError as error:
                if not self._subscribed:
                    raise
                reason = str(error)
            if reason != self._failure:
                log.warning("the channel is not followed; it is tried again", channel=self._wanted.channel, why=reason)
            self._failure = reason
            await asyncio.sleep(backoff.after(loop.time() - began))

    async def _follow(self, driver: OverlayDriver, head: Head, writer: LogWriter) -> None:
        wanted = self._wanted
        token = wanted.token or await self._own_token(head.name)
        async with connect(wanted.coordinator, token, rules=wanted.rules, ca=self._ca) as me:
            subscription = await me.subscribe(
                wanted.channel, parameters=wanted.parameters, acknowledge="manual", on_gap=_tell_gap
            )
            self._subscribed, self._failure = True, ""
            self._rows = self._rows or ChannelRows(subscription.channel, head.log)
            self._rows.begin()
            log.info("publishing what a channel finds", channel=subscription.channel)
            async for note in subscription:
                await self._publish(note, self._rows, driver, head, writer)
                note.done()

    async def _publish(
        self, note: Note, rows: ChannelRows, driver: OverlayDriver, head: Head, writer: LogWriter
    ) -> None:
        refused = rows.refused
        found = rows.publish(note.subscription, note.execution, note.rows)
        if rows.refused > refused:
            log.warning("rows cannot be publications", execution=note.execution, why=rows.reason)
        for row in found:
            await writer.room()
            driver.tell(row)
        while found and head.log.stored_number(found[-1].publisher) < found[-1].sequence:
            self._stored.clear()
            await self._stored.wait()

    async def _own_token(self, name: str) -> str:
        """The head's own, got at its first start and kept."""
        try:
            make_private(self._file)
            if token := self._file.read_text(encoding="ascii").strip():
                return token
            token = await CoordinatorClient(self._wanted.coordinator, ca=self._ca).register(name, None)
            with self._file.open("w", encoding="ascii") as file:
                file.write(f"{token}\n")
                file.flush()
                os.fsync(file.fileno())
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._file} cannot be used ({error}); {_HINT}") from None
        except (ForbiddenError, ConflictError, UnauthorizedError) as error:
            raise type(error)(f"{error}; {_HINT}") from error
        return token


def _tell_gap(gap: Gap) -> None:
    log.error("results were not kept for as long as the head was away", channel=gap.channel, what=str(gap))
