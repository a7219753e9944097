"""Where the lake is: a folder with all tables, as the settings say, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tocsin.data.disk import Disk, write_durably
from tocsin.data.lake.address import S3, LakeAddress
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.refusals import storage_errors
from tocsin.errors import ConflictError, SettingsError, StorageError
from tocsin.private import make_private_directory
from tocsin.settings import LakeSettings, Settings

if TYPE_CHECKING:
    from tocsin.data.fence import Fence

DATASETS: Final = "datasets"
RESULTS: Final = "results"
SUBSCRIPTIONS: Final = "subscriptions"
TOLD_NODES: Final = "told-nodes"
DEAD_LETTERS: Final = "dead-letters"
CHANNELS_DEAD_LETTERS: Final = "dead-letters-of-channels"
_OWNER: Final = "_owner"
_PROBE: Final = "_probe"
_NOTE: Final = "lake"


def open_lake(settings: Settings, identity: str, has_datasets: bool, fence: Fence | None = None) -> Folder:
    """The lake of a data cluster.

    It is in the data directory, or belongs to this data cluster alone and has its datasets; otherwise it is refused
    with ConflictError.

    Args:
        identity: of the store that has the definitions.
        has_datasets: whether there are datasets among these.
        fence: by which whoever takes over keeps this process from writing.
    """
    directory = settings.data.directory.resolve()
    lake = _folder(settings.lake, directory, fence)
    _check_note(lake, directory)
    if lake.url != str(directory):
        with storage_errors(lake):
            lake.make()
            _claim(lake, identity, has_datasets)
            _check_commits(lake)
        write_durably(directory / _NOTE, lake.url.encode())
    return lake


def spark_options(settings: LakeSettings) -> Mapping[str, str]:
    """What Spark has to be told to read the lake; for whoever may not open it yet."""
    if not settings.location.startswith(S3):
        return {}
    lake = LakeAddress(settings.location).seen_with(settings).open()
    try:
        return lake.spark
    finally:
        lake.close()


def _folder(settings: LakeSettings, directory: Path, fence: Fence | None) -> Folder:
    if not settings.location.startswith(S3):
        path = Path(settings.location).expanduser().resolve() if settings.location else directory
        try:
            make_private_directory(path)
        except OSError as error:
            raise StorageError(
                f"the lake cannot be in {path} ({error.strerror}); make it writable, or choose another lake.location"
            ) from None
        return DirectoryFolder(path, Disk(settings.sync, fence))
    return LakeAddress(settings.location).seen_with(settings).open(fence)


def _check_note(lake: Folder, directory: Path) -> None:
    """Tables that are found nowhere would be begun anew: the lake of a data directory is always the same."""
    note = directory / _NOTE
    known = note.read_text(encoding="utf-8") if note.exists() else ""
    if known and known != lake.url:
        raise ConflictError(
            f"the lake of the data directory {directory} is at {known}, not at {lake.url}: set lake.location as it "
            f"was, or copy everything there and remove {note}"
        )


def _claim(lake: Folder, identity: str, has_datasets: bool) -> None:
    """Two data clusters in one lake would ruin each other's tables."""
    if _OWNER not in lake.files():
        if has_datasets and DATASETS not in lake.folders():
            raise ConflictError(
                f"the lake at {lake.url} has none of the datasets that this data cluster knows: copy them there, or "
                "set lake.location as it was"
            )
        with suppress(FileExistsError):
            lake.create(_OWNER, identity.encode())
    if lake.read(_OWNER).decode() != identity:
        raise ConflictError(
            f"the lake at {lake.url} belongs to another data cluster: choose another lake.location; if that one is "
            f"gone for good, remove {lake.url}/{_OWNER}"
        )


def _check_commits(lake: Folder) -> None:
    """A store that does not know conditional puts takes them for others, and lets commits overwrite each other."""
    try:
        for attempt in (b"first", b"second"):
            lake.create(_PROBE, attempt)
    except FileExistsError:
        return
    raise SettingsError(
        f"the store of {lake.url} overwrites what is there in spite of If-None-Match: *, so that commits could be "
        "lost; choose one for lake.location that knows conditional writes"
    )
