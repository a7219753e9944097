"""A network from its first process to its last, with a person watching."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from tocsin.local.child import DidNotStartError
from tocsin.local.part import Part, StartStep
from tocsin.local.screen import NetworkScreen
from tocsin.local.supervisor import Supervisor
from tocsin.tasks import until_one_ends


class Network(Protocol):
    """What is run: groups of parts, how they are started, and what is said while they are stopped, the last first."""

    @property
    def groups(self) -> Sequence[Sequence[Part]]: ...

    @property
    def steps(self) -> Sequence[StartStep]: ...

    @property
    def parting(self) -> str: ...

    @property
    def token(self) -> str: ...


class Running:
    """Runs a network on a screen."""

    def __init__(self, network: Network, screen: NetworkScreen) -> None:
        self._network, self._screen = network, screen

    async def run(self, ended: asyncio.Event, then: Callable[[], Awaitable[Any]]) -> None:
        """Starts all, awaits ``then`` while watching over them, and stops all when that returns.

        When ``ended`` is set while they start, that is the end; later it is for ``then`` to heed. What does not start
        is a DidNotStartError, after the last lines of its log were shown.
        """
        network = self._network
        async with Supervisor(*network.groups, say=self._screen.trouble, token=network.token) as processes:
            try:
                await until_one_ends(self._bring_up(processes), told(ended))
                if not ended.is_set():
                    await until_one_ends(processes.watch(), _wait(then))
            except DidNotStartError as error:
                self._last_words(error)
                raise
            with self._screen.waiting(network.parting):
                await processes.stop()

    async def _bring_up(self, processes: Supervisor) -> None:
        for step in self._network.steps:
            with self._screen.waiting(step.sentence):
                await processes.start(*step.start)
                await processes.ready(*step.ready)

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
