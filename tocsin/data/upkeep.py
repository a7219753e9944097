"""Looking after the tables: results past their time removed, small files merged, files nobody needs deleted."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from tocsin.data.catalog import Catalog
from tocsin.data.lake.table import Table
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
        """Looks after every table once."""
        for results in list(self._catalog.results.values()):
            removed = results.expire(self._settings.results.retention_seconds, datetime.now(UTC))
            if removed:
                log.info("results past their retention removed", channel=results.channel, rows=removed)
        for table in self._catalog.all_tables():
            if self._stopping.is_set():
                return
            self._look_after(table)
        for channel in self._catalog.subscriptions.due():
            self._catalog.subscriptions.rebase(channel)

    def _loop(self) -> None:
        while not self._stopping.wait(self._settings.lake.maintenance_seconds):
            try:
                self.round()
            except TocsinError as error:
                log.error("upkeep failed", reason=str(error))
            except Exception:
                log.exception("upkeep failed in an unforeseen way")

    def _look_after(self, table: Table) -> None:
        if len(table.snapshot.files) >= self._settings.lake.compact_files:
            table.compact()
        deleted = table.vacuum(self._settings.lake.vacuum_after_seconds)
        if deleted:
            log.debug("files deleted", table=table.path.name, files=deleted)
