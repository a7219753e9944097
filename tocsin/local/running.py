"""A network from its first process to its last, with a person watching."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tocsin.local.child import DidNotStartError
from tocsin.local.network import COORDINATOR, DATA, TOKEN, LocalNetwork
from tocsin.local.screen import NetworkScreen
from tocsin.local.supervisor import Supervisor
from tocsin.tasks import until_one_ends


class Running:
    """Runs a network on a screen."""

    def __init__(self, network: LocalNetwork, screen: NetworkScreen) -> None:
        self._network, self._screen = network, screen

    async def run(self, ended: asyncio.Event, then: Callable[[], Awaitable[Any]]) -> None:
        """Starts all, awaits ``then`` while watching over them, and stops all when that returns.

        When ``ended`` is set while they start, that is the end; later it is for ``then`` to heed. What does not start
        is a DidNotStartError, after the last lines of its log were shown.
        """
        network = self._network
        groups = ([network.data()], [network.coordinator()], network.broker_parts())
        async with Supervisor(*groups, say=self._screen.trouble, token=TOKEN) as processes:
            try:
                await until_one_ends(self._bring_up(processes), told(ended))
                if not ended.is_set():
                    await until_one_ends(processes.watch(), _wait(then))
            except DidNotStartError as error:
                self._last_words(error)
                raise
            with self._screen.waiting("Stopping the brokers, the coordinator and the data cluster"):
                await processes.stop()

    async def _bring_up(self, processes: Supervisor) -> None:
        """Brokers begin when there is something to connect to; Spark, the slowest, is waited for last."""
        brokers = self._network.names
        with self._screen.waiting("Starting the coordinator"):
            await processes.start(DATA, COORDINATOR)
            await processes.ready(COORDINATOR)
        with self._screen.waiting(f"Starting {len(brokers)} broker{'s' if len(brokers) > 1 else ''}"):
            await processes.start(*brokers)
            await processes.ready(*brokers)
        with self._screen.waiting("Starting the data cluster, on Spark"):
            await processes.ready(DATA)

    def _last_words(self, error: DidNotStartError) -> None:
        if error.lines:
            self._screen.say("\nThe last lines of its log:", style="bold")
        for line in error.lines:
            self._screen.say(f"  {line}")
        self._screen.say()


async def told(ended: asyncio.Event) -> None:
    """Waits for the event."""
    await ended.wait()


async def _wait(then: Callable[[], Awaitable[Any]]) -> None:
    await then()
