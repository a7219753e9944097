"""What the file promises: its schema is known, a refusal leaves no trace, and room made is used again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.mounting import own_file_system
from tocsin.data.store import Store
from tocsin.data.store.sqlite import SqliteDatabase
from tocsin.errors import BusyError, StorageError
from tocsin.schema.definitions import Channel

OpenStore = Callable[[], Store]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the file of this test, each time as another process would."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Store(tmp_path / "data"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "state.sqlite"


def test_what_is_returned_from_is_synced_to_disk(store: Store) -> None:
    with store._database.changing() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_store_keeps_its_identity_and_another_in_its_place_has_its_own(
    open_store: OpenStore, file: Path, tmp_path: Path
) -> None:
    with open_store() as store:
        identity = store.identity
    assert open_store().identity == identity
    with Store(tmp_path / "elsewhere") as other:
        assert other.identity != identity


def test_a_token_is_nowhere_on_the_disk(store: Store, tmp_path: Path) -> None:
    token = store.tokens.add("ops", "admin")
    files = list((tmp_path / "data").iterdir())
    assert files
    assert not any(token.encode() in file.read_bytes() for file in files)


def test_a_store_of_a_newer_version_is_refused_untouched(store: Store, open_store: OpenStore, file: Path) -> None:
    store.close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match=r"has schema 99, this version of Tocsin knows \d: use the newer version"):
        open_store()


def test_a_file_that_is_no_store_is_refused(open_store: OpenStore, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"something else altogether" * 100)
    with pytest.raises(StorageError, match=r"state.sqlite is not a Tocsin store.*put a backup in its place"):
        open_store()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StorageError, match="File exists"):
        Store(tmp_path / "data")


def test_a_change_that_raises_leaves_no_trace(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "state.sqlite")

    def change() -> None:
        with database.changing() as connection:
            connection.execute("INSERT INTO tokens VALUES ('a', 'admin', 'h', 't')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    with database.looking() as connection:
        assert connection.execute("SELECT * FROM tokens").fetchall() == []
    database.close()


def test_readers_need_not_wait_for_a_change_and_see_it_when_it_is_made(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "state.sqlite")

    def seen() -> int:
        with database.looking() as connection:
            return len(connection.execute("SELECT * FROM tokens").fetchall())

    with database.changing() as connection:
        connection.execute("INSERT INTO tokens VALUES ('a', 'admin', 'h', 't')")
        assert seen() == 0
    assert seen() == 1
    database.close()


def test_another_process_that_keeps_the_store_busy_is_told(store: Store, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    _writer(store).execute("PRAGMA busy_timeout = 0")
    with pytest.raises(BusyError, match=r"another process is changing .*: nothing was changed; try again"):
        store.brokers.register("a", "http://a")
    other.execute("ROLLBACK")
    other.close()
    assert store.brokers.register("a", "http://a").name == "a"


def test_a_full_file_is_told_and_room_is_used_again(store: Store, channel: Channel) -> None:
    with store._database.changing() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    _writer(store).execute(f"PRAGMA max_page_count = {pages + 2}")
    batch = [f'["{number}"]' for number in range(10_000)]
    for _ in range(2):
        with pytest.raises(StorageError, match=r"the disk is full: nothing was changed; free space at .*data and try"):
            store.subscriptions.attach(channel, "a", batch)
        assert len(store.subscriptions.holdings()["a"]) == 0
    _writer(store).execute("PRAGMA max_page_count = 1000000")
    assert len(store.subscriptions.attach(channel, "a", batch)) == 10_000


FULL = """
import sys
from pathlib import Path
from tocsin.data.store import Store
from tocsin.data.subscriptions import SubscriptionRegistry
from tocsin.errors import StorageError
from tocsin.schema.definitions import Channel, ChannelKind, Column
from tocsin.schema.types import parse_type

ballast = Path(sys.argv[1]) / "ballast"
ballast.write_bytes(bytes(1_500_000))
store = Store(Path(sys.argv[1]))
channel = Channel("OfType", ChannelKind.CONTINUOUS, (Column("event", parse_type("STRING")),), "SELECT 1")
store.definitions.put(channel)
store.brokers.register("a", "http://a")
live = SubscriptionRegistry(store, Path(sys.argv[1]) / "subscriptions")
attached = []

def fill():
    try:
        while True:
            batch = [{"event": f"{len(attached) + number:030d}"} for number in range(500)]
            attached.extend(live.attach(channel, "a", batch))
    except StorageError as error:
        print(error, file=sys.stderr)

def check(registry):
    assert registry.of("a").tolist() == sorted(attached)
    assert registry.segments("oftype").ids().tolist() == sorted(attached)

fill()
once = len(attached)
check(live)
fill()
ballast.unlink()
fill()
assert len(attached) > once
check(live)
store.close()
store = Store(Path(sys.argv[1]))
check(SubscriptionRegistry(store, Path(sys.argv[1]) / "subscriptions"))
print(len(attached))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.process
def test_a_really_full_disk_costs_the_batch_that_met_it_and_nothing_else(tmp_path: Path) -> None:
    done = run(*own_file_system(tmp_path, "4m"), sys.executable, "-c", FULL, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the disk is full: nothing was changed; free space at") == 3, done.stderr
    assert int(done.stdout) > 0


def _writer(store: Store) -> sqlite3.Connection:
    assert isinstance(store._database, SqliteDatabase)
    return store._database._writer
