"""A folder of the lake as a prefix of an S3 bucket, at AWS or in any store that understands conditional puts.

An object that was put is there as a whole and durable; there is nothing to sync and nothing to rename. A commit is a
put of its entry that the store refuses if there is one of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError
from pyarrow import fs

from tocsin.data.lake.address import LakeAddress
from tocsin.data.lake.bucket import Bucket
from tocsin.data.lake.entries import LOG, entry_name, is_kept
from tocsin.data.lake.folder import Folder, FoundFile, OutcomeUnknownError
from tocsin.errors import StorageError
from tocsin.log import get_logger

if TYPE_CHECKING:
    from obstore import ObjectMeta

    from tocsin.data.fence import Fence

log = get_logger(__name__)

_REMOVED: Final = ".removed-"
# Answers of the store that it has done nothing; after others it may have, or may be asked again.
_REFUSED: Final = re.compile(r"status code: 4(?!08|09|29)\d\d")
_NOT_SENT: Final = re.compile(r"HttpError \{\s*kind: Connect,")
_AGAIN_SECONDS: Final = 1.0


class S3Folder:
    """What begins with ``prefix/`` in a bucket, around which there may be a fence.

    What can go wrong, beside what any folder meets: no answer comes to a commit. It is sent again until one does, for
    as long as the process runs; the store takes it once, and an entry that is there is ours if it reads as ours.
    """

    syncs: Final = True

    def __init__(self, bucket: Bucket, prefix: str, fence: Fence | None = None) -> None:
        self._bucket, self._prefix = bucket, "/".join(filter(None, prefix.split("/")))
        self._fence = fence

    @property
    def name(self) -> str:
        return self._prefix.rpartition("/")[2]

    @property
    def url(self) -> str:
        return f"s3://{self._bucket.name}/{self._prefix}".rstrip("/")

    @property
    def address(self) -> LakeAddress:
        address = self._bucket.address
        return LakeAddress(self.url, address.endpoint, address.region)

    @property
    def delta(self) -> dict[str, Any]:
        return {"table_uri": self.url, "storage_options": self._bucket.delta}

    @property
    def spark(self) -> Mapping[str, str]:
        return self._bucket.spark

    @property
    def arrow(self) -> tuple[fs.FileSystem, str]:
        return self._bucket.arrow, f"{self._bucket.name}/{self._prefix}".rstrip("/")

    @property
    def fence(self) -> Fence | None:
        return self._fence

    @property
    def aside(self) -> Folder:
        return self

    def below(self, name: str) -> Folder:
        return S3Folder(self._bucket, self._key(name), self._fence)

    def make(self) -> None:
        pass

    def files(self) -> dict[str, FoundFile]:
        with _refusals():
            found = obstore.list_with_delimiter(self._bucket.store, self._key("") or None)["objects"]
        return {meta["path"].rpartition("/")[2]: _found_file(meta) for meta in found}

    def find(self, name: str) -> FoundFile | None:
        try:
            with _refusals():
                return _found_file(obstore.head(self._bucket.store, self._key(name)))
        except FileNotFoundError:
            return None

    def folders(self) -> list[str]:
        with _refusals():
            found = obstore.list_with_delimiter(self._bucket.store, self._key("") or None)["common_prefixes"]
        return [prefix.rstrip("/").rpartition("/")[2] for prefix in found]

    def read(self, name: str) -> bytes:
        with _refusals():
            return bytes(obstore.get(self._bucket.store, self._key(name)).bytes())

    def write(self, name: str, content: bytes) -> None:
        with _refusals():
            obstore.put(self._bucket.store, self._key(name), content)

    def create(self, name: str, content: bytes) -> None:
        try:
            with _refusals():
                obstore.put(self._bucket.once, self._key(name), content, mode="create", use_multipart=False)
        except FileExistsError:
            # What reads the same has been put by us, though no answer came.
            if self.read(name) != content:
                raise

    def delete(self, name: str) -> None:
        with _refusals():
            obstore.delete(self._bucket.store, self._key(name))

    def move(self, name: str, to: Folder, new_name: str) -> None:
        assert isinstance(to, S3Folder)
        with _refusals():
            obstore.copy(self._bucket.store, self._key(name), to._key(new_name))
        self.delete(name)

    def link(self, name: str, new_name: str) -> None:
        with _refusals():
            obstore.copy(self._bucket.store, self._key(name), self._key(new_name))

    def keep(self, *names: str) -> None:
        pass

    def commit(self, number: int, content: bytes, files: Iterable[str] = ()) -> None:  # noqa: ARG002
        # Whether it may be there.
        sent = False
        while True:
            try:
                self._put_entry(number, content)
                sent = True
                self._check_last(number)
                return self._check_alone(number, content)
            except (FileExistsError, OutcomeUnknownError):
                raise
            except OSError as error:
                if not sent and _is_refusal(error):
                    raise
                sent = True
                log.warning("no answer to a commit; it is sent again until one comes", table=self.url)
                if self._bucket.ending.wait(_AGAIN_SECONDS):
                    raise OutcomeUnknownError(f"no answer came to the commit of entry {number} ({error})") from error

    def path(self, name: str) -> str:
        return f"s3a://{self._bucket.name}/{self._key(name)}"

    def open_output(self, name: str) -> pa.NativeFile:
        return self._bucket.arrow.open_output_stream(f"{self._bucket.name}/{self._key(name)}")

    def is_there(self) -> bool:
        return bool(self._objects()) and not self._is_marked()

    def take_away(self) -> bool:
        with _storage_errors(self.url):
            if not self._objects():
                return False
            self._parent().write(self._mark, b"")
            return True

    def put_back(self) -> None:
        with _storage_errors(self.url):
            self._parent().delete(self._mark)

    def finish_removal(self) -> None:
        with _storage_errors(self.url):
            if not self._is_marked():
                return
            with _refusals():
                if objects := self._objects():
                    obstore.delete(self._bucket.store, objects)
            # Last, so that the next start knows of what is left if this one does not come to its end.
            self._parent().delete(self._mark)

    def unfinished_removals(self) -> list[Folder]:
        marks = [name for name in self.files() if name.startswith(_REMOVED)]
        return [self.below(mark.removeprefix(_REMOVED)) for mark in marks]

    def close(self) -> None:
        self._bucket.ending.set()

    @property
    def _mark(self) -> str:
        """A file beside the folder that says that it is being removed."""
        return f"{_REMOVED}{self.name}"

    def _is_marked(self) -> bool:
        return self._parent().find(self._mark) is not None

    def _parent(self) -> S3Folder:
        return S3Folder(self._bucket, self._prefix.rpartition("/")[0], self._fence)

    def _objects(self) -> list[str]:
        """Everything below, by key."""
        with _refusals():
            return [meta["path"] for meta in obstore.list(self._bucket.store, f"{self._prefix}/").collect()]

    def _put_entry(self, number: int, content: bytes) -> None:
        try:
            self.create(f"{LOG}/{entry_name(number)}", content)
        except FileExistsError:
            raise FileExistsError(f"commit {number} is another's") from None

    def _check_alone(self, number: int, content: bytes) -> None:
        """Says nothing of an entry that was put while somebody else has taken over.

        A store that looks for an object first, and puts one then, lets two in: one of them replaces the other's.
        """
        if self._fence is None or not self._fence.is_passed():
            return
        if self.read(f"{LOG}/{entry_name(number)}") != content:
            raise FileExistsError(f"commit {number} is another's")
        raise OutcomeUnknownError(f"another data cluster has taken over while entry {number} was committed")

    def _check_last(self, number: int) -> None:
        """Takes an entry back if others have gone on long ago: theirs are in a checkpoint, and the number was free."""
        if number and not is_kept(self.below(LOG), number - 1):
            self.delete(f"{LOG}/{entry_name(number)}")
            raise FileExistsError(f"commit {number - 1} is no longer the last")

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}".lstrip("/")


def _found_file(meta: ObjectMeta) -> FoundFile:
    return FoundFile(meta["size"], meta["last_modified"].timestamp(), meta["e_tag"] or "")


@contextmanager
def _refusals() -> Iterator[None]:
    """What the client of the store raises as what a folder raises."""
    try:
        yield
    except AlreadyExistsError:
        raise FileExistsError("there is one of that name already") from None
    except BaseError as error:
        raise OSError(str(error).partition("\n")[0]) from error


def _is_refusal(error: OSError) -> bool:
    """Whether it is sure that nothing was done."""
    if isinstance(error, FileNotFoundError):
        return True
    return _REFUSED.search(str(error)) is not None or _NOT_SENT.search(str(error.__cause__)) is not None


@contextmanager
def _storage_errors(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{url} cannot be removed ({error}); try again when the store answers") from error
