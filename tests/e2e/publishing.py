"""A publisher who publishes on and on, whatever becomes of the data cluster meanwhile."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import httpx

from tests.e2e.oracle import ndjson
from tests.e2e.process import DataProcess

# A publisher tries again after these; anything else is a fault.
_TRY_AGAIN: Final = (429, 503, 507)


class Publisher(threading.Thread):
    """Publishes batch after batch, each until it is acknowledged; ``fault`` is an answer that should not have come.

    Args:
        pause: so many seconds are between batches, and before one is tried again.
    """

    def __init__(self, server: DataProcess, chance: Random, pause: float) -> None:
        super().__init__(daemon=True)
        self._url, self._chance, self._pause = f"http://127.0.0.1:{server.port}", chance, pause
        self._finishing = threading.Event()
        self.attempts = self.acknowledged = 0
        self.fault = ""

    @abstractmethod
    def publish_more(self, client: httpx.Client) -> None:
        """Publishes some batches."""

    def finish(self) -> None:
        """Publishes no more; returns when the batch at hand is acknowledged."""
        self._finishing.set()
        self.join()

    def run(self) -> None:
        """Publishes until it is told to finish."""
        with httpx.Client(
            headers={"Authorization": "Bearer demo"}, timeout=30, trust_env=False, verify=False
        ) as client:
            while not self._finishing.is_set() and not self.fault:
                self.publish_more(client)
                self._finishing.wait(self._pause)

    def until_acknowledged(self, client: httpx.Client, feed: str, records: Sequence[dict[str, Any]]) -> None:
        """Publishes a batch."""
        while not self.fault:
            self.attempts += 1
            try:
                answer = client.post(f"{self._url}/feeds/{feed}", content=ndjson(records))
            except httpx.TransportError:
                self._finishing.wait(self._pause)
                continue
            if answer.status_code == 200 and answer.json()["accepted"] == len(records):
                self.acknowledged += 1
                return
            if answer.status_code not in _TRY_AGAIN:
                self.fault = f"{answer.status_code} {answer.text}"
