from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.coordinator.postgresql import PostgresqlServer, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server for all tests; each takes a database of its own, and leaves the server running."""
    with server() as running:
        yield running
