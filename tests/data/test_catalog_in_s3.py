"""A catalog whose lake is in S3: definitions and tables stay together through crashes, and others' are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data.world import DATASETS, World, reports
from tests.s3 import S3Server
from tocsin.data.lake.s3 import S3Folder
from tocsin.data.store.definitions import Definitions
from tocsin.errors import ConflictError, StorageError

pytestmark = pytest.mark.spark


class Crashed(BaseException):
    """The process dies here."""


def dies(*_: object) -> None:
    raise Crashed


def refuses(*_: object) -> None:
    raise StorageError("the store does not answer")


@pytest.fixture
def folder(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Folder:
    for name, value in s3.variables.items():
        monkeypatch.setenv(name, value)
    return s3.folder()


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path, folder: S3Folder) -> Iterator[World]:
    world = World(spark, tmp_path / "data", lake={"location": folder.url})
    world.apply(DATASETS)
    world.put("Reports", *reports("fire"))
    yield world
    world.close()


def ids(world: World) -> list[str]:
    return sorted(world.catalog.tables["Reports"].read()["id"].to_pylist())


def test_what_was_stored_is_there_after_a_restart_and_nothing_of_it_is_local(world: World, folder: S3Folder) -> None:
    world.close()
    world.open()
    assert ids(world) == ["r0"]
    assert sorted(folder.below("datasets").folders()) == ["People", "Reports"]
    assert not (world.settings.data.directory / "datasets").exists()


@pytest.mark.parametrize(("owner", "step"), [(Definitions, "remove"), (S3Folder, "finish_removal")])
def test_a_crash_while_a_dataset_is_dropped_leaves_it_there_or_not(
    world: World, folder: S3Folder, owner: type, step: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, step, dies)
        with pytest.raises(Crashed):
            world.apply("DROP DATASET Reports")
    world.close()
    world.open()
    there = step == "remove"
    assert ("Reports" in world.catalog.tables) is there
    assert not there or ids(world) == ["r0"]
    assert folder.below("datasets").unfinished_removals() == []
    world.apply("DROP DATASET IF EXISTS Reports; " + DATASETS)
    assert ids(world) == []


def test_a_dataset_that_could_not_be_removed_yet_is_not_in_the_way_of_the_next_of_that_name(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Folder, "finish_removal", refuses)
        assert world.actions("DROP DATASET Reports") == ["dropped"]
        with pytest.raises(StorageError, match="the store does not answer"):
            world.apply(DATASETS)
        world.close()
    world.open()
    assert "Reports" not in world.catalog.tables
    world.apply(DATASETS)
    assert ids(world) == []


def test_another_data_cluster_cannot_use_the_same_lake(
    world: World, spark: SparkSession, tmp_path: Path, folder: S3Folder
) -> None:
    with pytest.raises(ConflictError, match="belongs to another data cluster"):
        World(spark, tmp_path / "other", lake={"location": folder.url})
    assert ids(world) == ["r0"]
