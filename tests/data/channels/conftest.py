"""What stands in the place of executions and of whoever is told of them."""

from __future__ import annotations

import pytest

from tests.data.channels.running import Executions, Told


@pytest.fixture
def executions() -> Executions:
    return Executions()


@pytest.fixture
def told() -> Told:
    return Told()
