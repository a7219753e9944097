"""Looking after the tables: results past their time removed, small files merged, long logs shortened, and files that
nobody needs deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from tocsin.data.catalog import Catalog
from tocsin.data.lake.table import Table
from tocsin.data.results import ChannelResults
from tocsin.errors import TocsinError
from tocsin.log import get_logger
from tocsin.settings import Settings

log = get_logger(__name__)


class Upkeep:
    """Does its rounds in a thread of its own until it is stopped; what fails is tried again in the next round."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog, self._settings = catalog, settings
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="upkeep", daemon=True)

    def start(self) -> None:
        """Begins, one interval from now."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the table at hand."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def round(self) -> None:
        """Looks after everything once; what fails does not keep the rest waiting."""
        catalog = self._catalog
        subscriptions = catalog.live.subscriptions
        jobs: list[Callable[[], object]] = [partial(self._expire, live.results) for live in catalog.live]
        jobs += [partial(self._look_after, table) for table in catalog.all_tables()]
        jobs += [partial(subscriptions.rebase, channel) for channel in subscriptions.due()]
        for job in jobs:
            if self._stopping.is_set():
                return
            self._tried(job)

    def _loop(self) -> None:
        while not self._stopping.wait(self._settings.lake.maintenance_seconds):
            self.round()

    def _tried(self, job: Callable[[], object]) -> None:
        try:
            job()
        except TocsinError as error:
            log.warning("upkeep failed, and is tried again in the next round", reason=str(error))
        except Exception:
            log.exception("upkeep failed in an unforeseen way")

    def _expire(self, results: ChannelResults) -> None:
        retention, live = self._settings.results.retention_seconds, self._catalog.live.subscriptions.among
        removed = results.expire(retention, datetime.now(UTC), live)
        if removed:
            log.info("results past their retention removed", channel=results.channel, rows=removed)

    def _look_after(self, table: Table) -> None:
        if len(table.snapshot.files) >= self._settings.lake.compact_files:
            table.compact()
        table.checkpoint(self._settings.lake.checkpoint_commits)
        deleted = table.vacuum(self._settings.lake.vacuum_after_seconds)
        if deleted:
            log.debug("files deleted", table=table.folder.name, files=deleted)
