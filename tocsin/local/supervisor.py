"""Keeping the network up: starts its parts, shows what they complain of, starts again what dies, stops all in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from textwrap import shorten
from types import TracebackType
from typing import Final, Self

from tocsin.client.operator import HealthProbe
from tocsin.errors import UnavailableError
from tocsin.local.child import Child, DidNotStartError
from tocsin.local.part import Part
from tocsin.tasks import until_all_end, until_one_ends

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 30.0
# Whoever was ready for so long and dies is not one that dies at every start.
STEADY_SECONDS: Final = 30.0
MOST_FAILURES: Final = 5
_LOOK_SECONDS: Final = 0.25
# Of a long complaint the beginning is enough on a screen; the log has all of it.
_SHOWN: Final = 160

Say = Callable[[str], None]


class Supervisor:
    """The processes of a network, as a context: at its end they are stopped, the last of the groups first.

    A part that dies is started again after a wait that doubles. One that dies before it was ever ready, or again and
    again without being ready in between, is given up: that raises DidNotStartError, and the rest is stopped.

    Args:
        groups: of parts; those in one group are stopped at the same time.
        say: shows a sentence to a person.
        token: shown with the calls for health, to be told all of it; empty where none is needed.
    """

    def __init__(self, *groups: Sequence[Part], say: Say, token: str, first_wait: float = FIRST_WAIT) -> None:
        self._groups = [[Child(part, HealthProbe(part.url, token)) for part in group] for group in groups]
        self._say, self._first_wait = say, first_wait

    @property
    def children(self) -> list[Child]:
        """All of them, in the order of the parts."""
        return [child for group in self._groups for child in group]

    def child(self, name: str) -> Child:
        """The one of that name."""
        return next(child for child in self.children if child.part.name == name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop()
        finally:
            await asyncio.gather(*(child.kill() for child in self.children))
            await asyncio.gather(*(child.close() for child in self.children))

    async def start(self, *names: str) -> None:
        """Starts these; returns when they answer, though they may not be ready."""
        chosen = [self.child(name) for name in names]
        for child in chosen:
            await child.start()
        await until_all_end(child.answers() for child in chosen)

    async def ready(self, *names: str) -> None:
        """Waits until these are ready."""
        await until_all_end(self.child(name).ready() for name in names)

    async def watch(self) -> None:
        """Keeps up what was started, until it is cancelled or a part is given up."""
        started = [child for child in self.children if child.was_started]
        await until_one_ends(self._read_along(), *(self._keep(child) for child in started))

    async def stop(self) -> None:
        """Stops all in order, and says who had to be killed."""
        for group in reversed(self._groups):
            obeyed = await asyncio.gather(*(child.stop() for child in group))
            for child, willing in zip(group, obeyed, strict=True):
                if not willing:
                    self._say(f"{child.part.name} did not stop within {child.part.stop_seconds:g} s and was killed.")

    async def _keep(self, child: Child) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            how = await child.wait()
            steady = asyncio.get_running_loop().time() - began >= STEADY_SECONDS
            failures = 1 if steady else failures + 1
            if failures > MOST_FAILURES:
                raise DidNotStartError(child.part.name, f"{how}, for the {failures}th time in a row", child.journal)
            await self._again(child, how, min(self._first_wait * 2 ** (failures - 1), LONGEST_WAIT))

    async def _again(self, child: Child, how: str, wait: float) -> None:
        """Starts it again; one that ends before it is ready is told of, and left to the next round."""
        name = child.part.name
        self._say(f"{name} {how}; starting it again in {wait:g} s. Its log: {child.part.log}")
        await asyncio.sleep(wait)
        await child.start()
        try:
            await child.ready()
        except UnavailableError:
            if child.running:
                raise
            return
        self._say(f"{name} is back.")

    async def _read_along(self) -> None:
        while True:
            for child in self.children:
                for complaint in child.journal.complaints():
                    text = shorten(complaint.text, _SHOWN, placeholder=" …")
                    self._say(f"{child.part.name}: {complaint.level}: {text}")
            await asyncio.sleep(_LOOK_SECONDS)
