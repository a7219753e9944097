"""One data cluster for all scenarios, a network for each, and the seed from which a failure is replayed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.reports import APPLICATION


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataProcess]:
    """The data cluster, with the application on it."""
    directory = tmp_path_factory.mktemp("data")
    cluster = DataProcess(directory / "data", directory / "data.log")
    try:
        with pytest.MonkeyPatch.context() as environment:
            for variable in [name for name in os.environ if name.startswith("TOCSIN_")]:
                environment.delenv(variable)
            cluster.start()
        cluster.wait_ready()
        cluster.apply(APPLICATION)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def random(request: pytest.FixtureRequest) -> Random:
    """Seeded by ``E2E_SEED``, 1 unless told; the seed is shown with a failure."""
    seed = int(os.environ.get("E2E_SEED", "1"))
    print(f"E2E_SEED={seed} replays {request.node.name}")
    return Random(f"{seed} {request.node.name}")
