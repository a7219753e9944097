"""Where the lake is: in the data directory, elsewhere by the settings, and always where it was."""

from __future__ import annotations

import shutil
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import obstore
import pytest

from tests.s3 import S3Server
from tocsin.data.lake.address import LakeAddress
from tocsin.data.lake.location import open_lake
from tocsin.errors import ConflictError, SettingsError, StorageError
from tocsin.settings import LakeSettings, Settings, load


def settings(directory: Path, location: object = "", **lake: str) -> Settings:
    directory.mkdir(exist_ok=True)
    values = {"data": {"directory": directory}, "lake": {"location": str(location), **lake}}
    return msgspec.convert(values, Settings)


def test_without_a_word_it_is_the_data_directory_and_nothing_is_noted(tmp_path: Path) -> None:
    lake = open_lake(settings(tmp_path), "me", True)
    assert lake.url == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_directory_is_made_and_found_again(tmp_path: Path) -> None:
    for _ in range(2):
        lake = open_lake(settings(tmp_path / "data", tmp_path / "srv" / "lake"), "me", False)
        assert lake.url == str(tmp_path / "srv" / "lake")
    assert stat.S_IMODE((tmp_path / "srv" / "lake").stat().st_mode) == 0o700


def test_a_data_directory_does_not_begin_anew_in_another_lake(tmp_path: Path) -> None:
    open_lake(settings(tmp_path / "data", tmp_path / "one"), "me", False)
    for other in ("", tmp_path / "other"):
        with pytest.raises(ConflictError, match=f"is at {tmp_path / 'one'}, not at"):
            open_lake(settings(tmp_path / "data", other), "me", False)


def test_a_lake_that_lacks_the_datasets_is_refused_until_they_are_copied_there(tmp_path: Path) -> None:
    wanted = settings(tmp_path / "data", tmp_path / "lake")
    (tmp_path / "data" / "datasets" / "Reports").mkdir(parents=True)
    with pytest.raises(ConflictError, match="has none of the datasets that this data cluster knows: copy them there"):
        open_lake(wanted, "me", True)
    shutil.copytree(tmp_path / "data" / "datasets", tmp_path / "lake" / "datasets")
    assert open_lake(wanted, "me", True).folders() == ["datasets"]


def test_a_node_opens_the_lake_it_is_told_with_credentials_of_its_own(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = s3.folder().address
    assert msgspec.json.decode(msgspec.json.encode(told)) == {
        "url": told.url,
        "endpoint": s3.endpoint,
        "region": "us-east-1",
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, s3.variables[name])
    opened = told.seen_with(LakeSettings()).open()
    opened.write("a", b"1")
    assert opened.read("a") == b"1"
    assert opened.address == told


def test_what_a_node_is_set_to_goes_before_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = LakeAddress("s3://bucket/lake", "http://head:9000", "eu-central-1")
    assert told.seen_with(LakeSettings()) == told
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://there:9000")
    assert told.seen_with(LakeSettings()).endpoint == "http://there:9000"
    own = told.seen_with(LakeSettings(endpoint="http://here:9000", region="here"))
    assert (own.endpoint, own.region) == ("http://here:9000", "here")


def test_a_lake_of_somebody_else_is_refused_also_in_s3(tmp_path: Path, s3: S3Server) -> None:
    folder = s3.folder()
    with pytest.MonkeyPatch.context() as environment:
        for name, value in s3.variables.items():
            environment.setenv(name, value)
        mine = settings(tmp_path / "mine", folder.url)
        assert open_lake(mine, "me", False).url == folder.url
        assert open_lake(mine, "me", True).url == folder.url
        with pytest.raises(ConflictError, match="belongs to another data cluster"):
            open_lake(settings(tmp_path / "yours", folder.url), "you", False)


def test_a_store_that_overwrites_what_is_there_is_refused(
    tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = obstore.put

    def unconditional(store: Any, path: str, content: bytes, **_: object) -> Any:
        return put(store, path, content)

    for name, value in s3.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(obstore, "put", unconditional)
    with pytest.raises(SettingsError, match="overwrites what is there in spite of If-None-Match"):
        open_lake(settings(tmp_path / "data", s3.folder().url), "me", False)


def test_a_bucket_that_cannot_be_reached_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.data.lake.bucket._RETRY", timedelta(seconds=0.1))
    wanted = settings(tmp_path / "data", "s3://bucket/prefix", endpoint="http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with pytest.raises(StorageError, match="s3://bucket/prefix"):
        open_lake(wanted, "me", False)


@pytest.mark.parametrize(
    "location", ["s3://", "s3://B", "s3://bucket/a b", "s3a://bucket/prefix", "gs://x", "hdfs://x/y"]
)
def test_what_is_no_place_for_a_lake_is_refused_by_the_settings(location: str) -> None:
    with pytest.raises(SettingsError, match=r"lake\.location"):
        load(environ={}, overrides=[f"lake.location={location}"])
