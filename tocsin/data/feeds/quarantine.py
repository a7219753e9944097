"""Keeping a damaged segment for a person to look at, after the log itself has gone on and removed it."""

from __future__ import annotations

import os
import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from tocsin.data.disk import make_directory, sync_directory
from tocsin.data.feeds.layout import slice_directory
from tocsin.data.feeds.reader import Damage
from tocsin.errors import StorageError


def quarantine(path: Path, damage: Damage) -> Path:
    """Copy the damaged segment into the feed's quarantine, once, and say where it is.

    Of a segment that is missing there is nothing to copy: a note in its place says so.
    """
    source = slice_directory(path, damage.slice) / damage.segment
    kept = path / "quarantine" / f"{source.parent.name}-{source.name}"
    try:
        make_directory(kept.parent)
        if not source.exists():
            kept = kept.with_suffix(".missing")
            _put(kept, BytesIO(f"{damage}\n".encode()))
        elif not kept.exists():
            with source.open("rb") as original:
                _put(kept, original)
    except OSError as error:
        raise StorageError(
            f"{source} is damaged and cannot be copied to {kept.parent} ({error.strerror}): "
            "copy it by hand before it is removed"
        ) from error
    return kept


def _put(kept: Path, content: BinaryIO) -> None:
    # Several readers may find the same damage at the same time, so each makes a copy of its own and puts it in place.
    with tempfile.NamedTemporaryFile(dir=kept.parent, prefix=".draft-", delete=False) as draft:
        try:
            shutil.copyfileobj(content, draft)
            draft.flush()
            # The segment itself is removed once it has been read.
            os.fsync(draft.fileno())
            Path(draft.name).replace(kept)
            sync_directory(kept.parent)
        except BaseException:
            # It may have its name already.
            Path(draft.name).unlink(missing_ok=True)
            raise
