"""The end of a broker's own token, told before it comes: from then on the coordinator would not let it in again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tocsin.coordinator.tokens import expiry
from tocsin.log import get_logger

log = get_logger(__name__)

DAY: Final = 86_400.0
NOTICE: Final = 7 * DAY


class Expiry:
    """When the broker's token ends. One that does not say so, like that of the demo, never does."""

    def __init__(self, broker: str, token: str, now: Callable[[], float] = time.time) -> None:
        self._broker, self._now, self._ends = broker, now, expiry(token)

    def warning(self) -> str | None:
        """What somebody should do soon; None while there is time."""
        if self._ends is None or self._now() < self._ends - NOTICE:
            return None
        day = datetime.fromtimestamp(min(self._ends, 253e9), UTC).isoformat(" ", "minutes").removesuffix("+00:00")
        verb = "ends" if self._now() < self._ends else "has ended"
        return (
            f"broker.token {verb} at {day} UTC, after which the coordinator does not let this broker in again: make "
            f"another with 'tocsin token sign {self._broker} --role broker'"
        )

    async def watch(self) -> None:
        """Warns in the log once a day, for ever."""
        while True:
            if warning := self.warning():
                log.warning("the broker's token ends soon", broker=self._broker, advice=warning)
            await asyncio.sleep(DAY if self._ends is None else min(DAY, max(1.0, self._until_notice())))

    def _until_notice(self) -> float:
        assert self._ends is not None
        remaining = self._ends - NOTICE - self._now()
        return remaining if remaining > 0 else DAY
