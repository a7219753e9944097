"""Looking into the store for what ``tocsin token`` changed there: keys, withdrawn tokens, names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tocsin.coordinator.events import Amended
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store import CoordinatorStore
from tocsin.errors import BusyError, StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

LOOK_SECONDS: Final = 1.0


class StoreWatch:
    """Tells of every change, within a second or when asked to look; so it does when a key's time has come.

    What can go wrong: the store cannot be read for a while. What it held last counts until it can.
    """

    def __init__(self, store: CoordinatorStore, keyring: Keyring, clock: Callable[[], float]) -> None:
        self._store, self._known, self._clock = store, keyring, clock
        self._tell: list[Callable[[Amended], None]] = []
        self._looking = asyncio.Lock()

    def listen(self, tell: Callable[[Amended], None]) -> None:
        """Has ``tell`` called with every change from now on."""
        self._tell.append(tell)

    async def run(self) -> None:
        """Looks again and again, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Tells of what has changed by now."""
        async with self._looking:
            try:
                amended = await asyncio.to_thread(self._look_for_change)
            except (StorageError, BusyError) as error:
                log.debug("the store cannot be read for changes of tokens", error=str(error))
                return
            if amended is not None:
                self._known = amended.keyring
                log.info("keys, tokens or names were changed in the store")
                for tell in self._tell:
                    tell(amended)

    def _look_for_change(self) -> Amended | None:
        keyring = self._store.keyring().at(self._clock())
        if keyring == self._known:
            return None
        # Those that were registered come with the number that tells of them, or before.
        names = self._store.unplaced_subscribers() if keyring.names != self._known.names else []
        return Amended(keyring, tuple(names))
