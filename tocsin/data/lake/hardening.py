"""Making sure that a table is on the disk itself, not only in the system's memory, so that a power cut cannot undo it.

The Delta library writes files without asking the disk to keep them. A process may die at any moment without harm; but
before the feed log forgets records, the tables that have them must outlive the machine too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path


class Hardening:
    """Knows which files of one table are already safe. May be used from several threads."""

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, path / "_delta_log"
        self._safe: set[str] = set()
        self._lock = threading.Lock()

    def harden(self, files: Iterable[str]) -> None:
        """Returns when these data files, and the commits that name them, are on disk. Raises OSError if it refuses."""
        with self._lock:
            wanted = {*files, *(entry.path for entry in os.scandir(self._log) if entry.is_file())}
            for path in sorted(wanted - self._safe):
                _sync(path)
            for directory in (self._path, self._log):
                _sync(str(directory))
            # A file is never written again once it is there, except the pointer to the last checkpoint.
            self._safe = {path for path in wanted if not path.endswith("_last_checkpoint")}


def _sync(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # removed meanwhile, as nobody needs it any more
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
