"""What the disk and the Delta library refuse, told as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError

from tocsin.errors import StorageError

_FULL = ("No space left", "os error 28", "StorageFull")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Refusals as StorageError about the table at ``path``; anything else is passed on."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise StorageError(f"the table at {path} cannot be written: {_reason(error)}") from error


def _reason(error: DeltaError | OSError) -> str:
    text = str(error)
    if any(sign in text for sign in _FULL):
        return "the disk is full; free some space, and it goes on by itself"
    return text
