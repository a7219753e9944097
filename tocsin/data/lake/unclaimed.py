"""Files that processing nodes wrote and nobody has committed: removed after a while, and not taken any more by then.

A node's file may be offered late, or never. The two times lie far apart, so that a file that is removed is one that
nobody can have committed meanwhile, not even another process that has taken over this table.
"""

from __future__ import annotations

import re
import time
from collections.abc import Container
from typing import Final
from uuid import uuid4

from tocsin.data.lake.folder import Folder, FoundFile

LATEST_SECONDS: Final = 1800.0
REMOVED_SECONDS: Final = 3600.0
_NAME: Final = re.compile(r"node-[0-9a-f]{32}\.parquet")


def new_name() -> str:
    """A name for a node's file that nobody ever used; by it, one that nobody has claimed is known as such."""
    return f"node-{uuid4().hex}.parquet"


def is_name(name: str) -> bool:
    """Whether a file of this name is a node's."""
    return _NAME.fullmatch(name) is not None


def is_too_old(file: FoundFile) -> bool:
    """Whether it is too late to commit a file."""
    return _age(file) > LATEST_SECONDS


def find_unclaimed(table: Folder, known: Container[str]) -> set[str]:
    """The paths of nodes' files in a table's folder that are in no commit, ``known`` being in one, and will be in none.

    Only whoever made the last commit is to ask.
    """
    old = [name for name, file in table.files().items() if is_name(name) and _age(file) > REMOVED_SECONDS]
    return {path for path in map(table.path, old) if path not in known}


def _age(file: FoundFile) -> float:
    return time.time() - file.changed_at
