"""Processes that the tests start, ended with the test whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import DataProcess

Cluster = Callable[..., DataProcess]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Makes data clusters on a directory of the test's own; ``settings`` by their keys."""
    made: list[DataProcess] = []

    def make(prefix: tuple[str, ...] = (), **settings: object) -> DataProcess:
        keys = {key.replace("__", "."): value for key, value in settings.items()}
        made.append(DataProcess(tmp_path / "data", tmp_path / f"log-{len(made)}", keys, prefix))
        return made[-1]

    yield make
    for process in made:
        process.close()
