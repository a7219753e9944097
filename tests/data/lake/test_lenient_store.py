"""A store that looks for an object first, and puts one then: it lets two in, of whom one replaces the other's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import AlreadyExistsError

from tests.data.lake.conftest import SCHEMA
from tests.s3 import S3Server
from tocsin.data.fence import Fence
from tocsin.data.lake.entries import LOG, VERSION_MARKER, TableChange, encode_entry, entry_name
from tocsin.data.lake.s3 import S3Folder
from tocsin.data.lake.table import Table
from tocsin.errors import StorageError, SupersededError

Rows = Callable[..., pa.Table]
Content = Callable[[Table], dict[str, int]]


class LenientStore:
    """Puts what was not there when it looked; between the two, and after that, something else may happen once.

    What ``looked`` gives is whether the object is put all the same, or only said to be.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looked: list[Callable[[], bool]] = []
        self.put: list[Callable[[], None]] = []
        self._put = obstore.put
        monkeypatch.setattr(obstore, "put", self._handle)

    def _handle(self, store: Any, path: str, content: bytes, **how: Any) -> Any:
        if how.pop("mode", None) != "create":
            return self._put(store, path, content, **how)
        with suppress(FileNotFoundError):
            obstore.head(store, path)
            raise AlreadyExistsError(path)
        if not self.looked or self.looked.pop()():
            self._put(store, path, content, **how)
        if self.put:
            self.put.pop()()
        return None


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> LenientStore:
    return LenientStore(monkeypatch)


@pytest.fixture
def folder(s3: S3Server, tmp_path: Path) -> Callable[[int], S3Folder]:
    """The table's folder as the data cluster of that term has it, once it has taken over."""
    place = s3.folder()

    def fenced(term: int) -> S3Folder:
        fence = Fence(tmp_path, term)
        fence.put_up()
        return S3Folder(place._bucket, place._prefix, fence)

    return fenced


def test_nobody_is_told_of_a_commit_that_a_successors_fence_replaces(
    store: LenientStore, folder: Callable[[int], S3Folder], rows: Rows, content: Content
) -> None:
    first = Table(folder(1), SCHEMA)

    def append() -> bool:
        with pytest.raises(StorageError, match="has taken over while entry 2 was committed"):
            first.append(rows(a=1), {"slice-0": 1})
        return True

    store.looked.append(append)
    second = Table(folder(2), SCHEMA)
    assert (store.looked, content(second), second.marker("slice-0")) == ([], {}, 0)


def test_a_successor_finds_what_has_replaced_its_fence(store: LenientStore, folder: Callable[[int], S3Folder]) -> None:
    Table(folder(1), SCHEMA)
    late = encode_entry(TableChange("WRITE", markers={"slice-0": 7, VERSION_MARKER: 1}), synced=True, term=1)
    place = folder(2)
    store.put.append(lambda: place.below(LOG).write(entry_name(2), late))
    second = Table(place, SCHEMA)
    assert (store.put, second.version, second.marker("slice-0")) == ([], 1, 7)
    second.mark({"slice-0": 8})
    assert Table(folder(3), SCHEMA).marker("slice-0") == 8


def test_who_is_told_that_an_entry_was_put_which_another_has_replaced_is_refused(
    store: LenientStore, folder: Callable[[int], S3Folder], rows: Rows, content: Content
) -> None:
    first, others = Table(folder(1), SCHEMA), list[Table]()

    def take_over() -> bool:
        others.append(Table(folder(2), SCHEMA))
        return False

    store.looked.append(take_over)
    with pytest.raises(SupersededError, match="commit 2 is another's"):
        first.append(rows(a=1), {"slice-0": 1})
    [second] = others
    second.append(rows(b=2), {"slice-0": 1})
    assert content(Table(folder(3), SCHEMA)) == {"b": 2}
