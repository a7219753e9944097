"""Standing by: waiting until the data cluster is no more, without touching anything that is its own.

With the state in PostgreSQL the data cluster gives signs of life there. One that was silent for too long may only be
held up or cut off; whoever takes over puts a fence between it and everything that counts. With the state in a file of
the directory, on one machine, its lock tells.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from tocsin.data import session
from tocsin.data.feeds.logs import EMBEDDED
from tocsin.data.lake.location import spark_options
from tocsin.data.store import SeenHead, open_store
from tocsin.errors import ConflictError, SparkEndedError, StorageError
from tocsin.lock import take_lock
from tocsin.settings import Settings

LOOK_SECONDS: Final = 0.25


class Silence:
    """How long a data cluster has been silent, as seen by whoever stands by, with its own clock.

    Args:
        most: after so many seconds without a sign of life it counts as gone.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._seen: SeenHead | None = None
        self._since = 0.0

    def is_over(self, now: float, seen: SeenHead) -> bool:
        """Whether it is time to take over from what is seen now."""
        if seen != self._seen:
            self._seen, self._since = seen, now
        return seen.ended or now - self._since >= self._most

    def forget(self) -> None:
        """The state could not be looked at: neither could the other give a sign of life."""
        self._seen = None


class Turn(NamedTuple):
    """It is time to be the data cluster: on this session, in the place of whoever was silent, if anybody was."""

    spark: SparkSession
    silent: SeenHead | None


class Standby(AbstractContextManager["Standby"]):
    """Stands by with a Spark session that is warm when its turn comes.

    What can go wrong: the state goes away (it is waited for, and then for the one that could not give a sign of life);
    it is away at the beginning (StorageError), Spark does not start or ends (UnavailableError): whoever runs this
    starts it again.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._scratch = TemporaryDirectory(prefix="tocsin-spark-", ignore_cleanup_errors=True)
        self._spark: SparkSession | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spark is not None:
            with suppress(Exception):
                self._spark.stop()
        self._scratch.cleanup()

    async def wait_for_turn(self) -> Turn:
        """Waits until nobody is the data cluster."""
        if self._spark is None:
            self._spark = await asyncio.to_thread(self._warm_up)
        silent = await (self._wait_for_silence() if self._settings.data.state else self._wait_for_lock())
        return Turn(self._spark, silent)

    def _warm_up(self) -> SparkSession:
        kafka = self._settings.feeds.log != EMBEDDED
        lake = spark_options(self._settings.lake)
        spark = session.start(self._settings.spark, Path(self._scratch.name), kafka, lake)
        # The first job loads most of what later ones need. A cluster may have no core for it while another is active.
        if session.is_local(spark):
            spark.range(1).toArrow()
        return spark

    async def _wait_for_lock(self) -> None:
        while True:
            await self._pause()
            if await asyncio.to_thread(_is_free, self._settings.data.directory):
                return

    async def _wait_for_silence(self) -> SeenHead | None:
        data, loop = self._settings.data, asyncio.get_running_loop()
        silence = Silence(data.takeover_seconds)
        with await asyncio.to_thread(open_store, data) as store:
            while True:
                await self._pause()
                try:
                    seen = await asyncio.to_thread(store.head.last_seen)
                except StorageError:
                    silence.forget()
                    continue
                if silence.is_over(loop.time(), seen):
                    return None if seen.ended else seen

    async def _pause(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        if self._spark is None or session.has_ended(self._spark):
            raise SparkEndedError("Spark's process has ended, perhaps for want of memory; start this one again")


def _is_free(directory: Path) -> bool:
    try:
        os.close(take_lock(directory / "lock", "the data directory"))
    except FileNotFoundError:
        return True
    except (ConflictError, OSError):
        return False
    return True
