"""The store that the settings name."""

from __future__ import annotations

from tocsin.coordinator.store import CoordinatorStore
from tocsin.coordinator.store.sqlite import SqliteStore
from tocsin.errors import SettingsError
from tocsin.settings.coordinator import CoordinatorSettings

_POSTGRESQL = ("postgresql://", "postgres://")


def open_store(settings: CoordinatorSettings) -> CoordinatorStore:
    """Opens it, not yet claimed: a file in the coordinator's directory, or the database at ``coordinator.store``."""
    if not settings.store:
        return SqliteStore(settings.directory / "coordinator.sqlite")
    if not settings.store.startswith(_POSTGRESQL):
        raise SettingsError(
            'coordinator.store must be "" for a file in coordinator.directory, or the URL of a PostgreSQL database: '
            "postgresql://user@host/database"
        )
    try:
        from tocsin.coordinator.store.postgresql import PostgresqlStore
    except ImportError:
        raise SettingsError(
            "a coordinator.store in PostgreSQL needs psycopg: pip install 'tocsin[postgresql]'"
        ) from None
    return PostgresqlStore(settings.store)
