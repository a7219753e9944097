"""A lake that nodes share, in a directory or in S3; there they find the way by credentials of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.s3 import S3Server
from tocsin.data.disk import Disk
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder

directory_only = pytest.mark.parametrize("lake", ["directory"], indirect=True)


@pytest.fixture(params=["directory", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Where the head has its tables."""
    if request.param == "directory":
        return DirectoryFolder(tmp_path / "lake", Disk(sync=False))
    server: S3Server = request.getfixturevalue("s3")
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    return server.folder()
