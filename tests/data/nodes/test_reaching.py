"""A node that does not reach the lake, or another one, says so before it has anything, and goes on when it does."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data.nodes.conftest import directory_only
from tests.data.nodes.sharing import UNKEYED, PlainProcessing, Sharing, on_spark
from tests.s3 import S3Server, s3_server
from tocsin.data.disk import Disk
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.nodes.reaching import require_executors
from tocsin.errors import StorageError, TocsinError, UnavailableError


@pytest.fixture
def sharing(tmp_path: Path, lake: Folder) -> Iterator[Sharing]:
    """Without a primary key: no ids are looked up in the dataset."""
    sharing = Sharing(tmp_path, UNKEYED, lake=lake)
    yield sharing
    sharing.log.close()


def node(sharing: Sharing) -> PlainProcessing:
    return PlainProcessing(sharing.shared, sharing.directory / "ids-a")


def test_who_reaches_the_lake_leaves_nothing_there_when_it_prepares(sharing: Sharing) -> None:
    before = set(sharing.table.folder.files())
    node(sharing).prepare([0, 1])
    assert set(sharing.table.folder.files()) == before


@directory_only
def test_a_node_that_has_another_directory_there_cannot_prepare(sharing: Sharing) -> None:
    shutil.rmtree(sharing.directory / "lake" / "datasets")
    with pytest.raises(StorageError, match=r"the dataset Reports is not at .* has the same directory"):
        node(sharing).prepare([0])


@directory_only
def test_a_node_that_may_not_write_cannot_prepare(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    processing = node(sharing)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", refused)
        with pytest.raises(StorageError, match=r"nothing can be written at .*Permission denied"):
            processing.prepare([0])
    processing.prepare([0])


@pytest.mark.parametrize("lake", ["s3"], indirect=True)
def test_a_node_with_other_credentials_cannot_prepare(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-somebody-else")
    with pytest.raises(StorageError, match="by credentials of its own"):
        node(sharing).prepare([0])


@pytest.mark.spark
def test_executors_that_reach_the_lake_leave_nothing_there_when_a_node_prepares(
    sharing: Sharing, spark: SparkSession
) -> None:
    before = set(sharing.table.folder.files())
    on_spark(spark, sharing, by_executors=True).prepare([0, 1])
    assert set(sharing.table.folder.files()) == before


@pytest.mark.spark
@pytest.mark.parametrize("lake", ["s3"], indirect=True)
def test_a_node_whose_executors_have_other_credentials_cannot_prepare_until_they_have_the_right_ones(
    sharing: Sharing, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    processing = on_spark(spark, sharing, by_executors=True)
    with monkeypatch.context() as patched:
        patched.setitem(spark.sparkContext.environment, "AWS_SECRET_ACCESS_KEY", "of-somebody-else")
        with pytest.raises(StorageError, match=r"executors cannot write at s3://.* credentials for the bucket") as told:
            processing.prepare([0])
    assert "\n" not in str(told.value)
    processing.prepare([0])


@pytest.mark.spark
@directory_only
@pytest.mark.parametrize(
    ("elsewhere", "why"), [(True, "is not there as seen from here"), (False, "No such file or directory")]
)
def test_a_node_whose_executors_see_another_directory_or_none_cannot_prepare(
    sharing: Sharing, spark: SparkSession, elsewhere: bool, why: str
) -> None:
    folder = AnotherThere(sharing.table.folder, sharing.directory / "there")
    if elsewhere:
        (sharing.directory / "there").mkdir()
    with pytest.raises(StorageError, match=rf"executors cannot write at .*{why}.* the same directory"):
        require_executors(spark, folder)  # type: ignore[arg-type]


class AnotherThere:
    """A directory of which executors see another one under its path."""

    def __init__(self, folder: Folder, there: Path) -> None:
        self._folder, self._there = folder, there
        self.url = folder.url

    def __reduce__(self) -> tuple[type[DirectoryFolder], tuple[Path, Disk]]:
        return DirectoryFolder, (self._there, Disk(sync=False))

    def find(self, name: str) -> object:
        return self._folder.find(name)

    def delete(self, name: str) -> None:
        self._folder.delete(name)


@pytest.mark.s3
def test_what_cannot_be_written_while_the_store_is_away_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.lake.bucket._RETRY", timedelta(seconds=0.1))
    with s3_server() as server:
        sharing = shared(server, tmp_path, monkeypatch)
        processing = node(sharing)
        sharing.publish({"id": "a", "value": 1}, {"id": "b", "value": 2})
        server.stop(signal.SIGKILL)
        with pytest.raises((TocsinError, OSError)):
            processing.process(sharing.starts())
        server.start()
        batch = processing.process(sharing.starts())
        server.stop(signal.SIGKILL)
        # It is nobody's fault, least of all the node's.
        with pytest.raises(UnavailableError, match="it is tried again"):
            sharing.commit(batch)
        server.start()
        # What was answered is there: nothing has to be processed again.
        sharing.commit(batch)
        assert sharing.rows() == {"a": 1, "b": 2}
        sharing.log.close()


def shared(server: S3Server, directory: Path, environment: pytest.MonkeyPatch) -> Sharing:
    for name, value in server.variables.items():
        environment.setenv(name, value)
    return Sharing(directory, lake=server.folder())
