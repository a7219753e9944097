"""A node that does not reach the lake, or another one, says so before it has anything, and goes on when it does."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.data.nodes.conftest import directory_only
from tests.data.nodes.sharing import UNKEYED, PlainProcessing, Sharing
from tests.s3 import S3Server, s3_server
from tocsin.data.lake.folder import Folder
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
