"""What the disk and the Delta library refuse, told as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError

from tocsin.data.disk import FULL_SENTENCE, says_full
from tocsin.data.lake.folder import Folder
from tocsin.errors import StorageError


@contextmanager
def storage_errors(folder: Folder, done: str = "written") -> Iterator[None]:
    """Refusals as StorageError about the table in ``folder``; anything else is passed on."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise StorageError(f"the table at {folder.url} cannot be {done}: {_reason(error)}") from error


def _reason(error: DeltaError | OSError) -> str:
    return FULL_SENTENCE if says_full(str(error)) else str(error)
