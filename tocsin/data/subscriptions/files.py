"""The directory of base files: at most one of each channel counts, the newest that is sound."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa

from tocsin.data.subscriptions.base import Base
from tocsin.errors import StorageError

_NAME: Final = re.compile(r"(?P<channel>\w+)-(?P<number>\d+)\.parquet")


class BaseFiles:
    """Where base files are found and written. Each gets a number of its own, so that none is ever overwritten.

    Args:
        directory: created when missing; nothing else may be kept in it.
        store: the identity of the store that the subscriptions are in.
    """

    def __init__(self, directory: Path, store: str) -> None:
        self._directory, self._store = directory, store
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{directory} cannot be created: {error.strerror}") from error
        self._found = sorted(self._numbered(), reverse=True)
        self._numbers = count(self._found[0][0] + 1 if self._found else 1)

    def newest(self, channel: str, schema: pa.Schema) -> Base | None:
        """The newest sound base of the channel that an earlier process left."""
        for _, name, path in self._found:
            if name == channel and (base := Base.opened(path, schema, self._store)):
                return base
        return None

    def write(self, channel: str, rows: pa.Table) -> Base | None:
        """The rows as a new base; no rows need none."""
        if not rows.num_rows:
            return None
        return Base.written(self._directory / f"{channel}-{next(self._numbers)}.parquet", rows, self._store)

    def sweep(self, kept: set[Path]) -> None:
        """Remove what earlier processes left, except these."""
        for path in self._directory.iterdir():
            if path not in kept:
                path.unlink(missing_ok=True)

    def _numbered(self) -> list[tuple[int, str, Path]]:
        matches = [(_NAME.fullmatch(path.name), path) for path in self._directory.iterdir()]
        return [(int(match["number"]), match["channel"], path) for match, path in matches if match]
