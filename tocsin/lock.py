"""The lock that lets one process at a time write something; the system lets go of it when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tocsin.errors import ConflictError


def take_lock(file: Path, what: str) -> int:
    """A descriptor that holds the lock until it is closed; refused at once when another holds it.

    ``what`` the lock is for, such as ``the feed log``, is in the directory of ``file``.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Of constant length, so that a process can start on a full disk.
        os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise ConflictError(
            f"{what} at {file.parent} is being written by process {holder}: stop that process first, or choose another "
            "directory"
        ) from None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
