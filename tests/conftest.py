"""What every test may rely on: no settings leak in from outside, and Spark's workers run this interpreter."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from tests.failures import pytest_configure as pytest_configure
from tests.java import start_quickly
from tests.kafka import KafkaServer, kafka_server
from tests.postgresql import PostgresqlServer, postgresql_server
from tests.s3 import S3Server, s3_server
from tests.skips import pytest_make_collect_report as pytest_make_collect_report
from tests.skips import pytest_runtest_makereport as pytest_runtest_makereport
from tocsin.settings import DataSettings, Settings

# A shared machine may stall any example; slow code is for the benchmarks to find. The same examples every time, so that
# a run fails for what was changed.
hypothesis_settings.register_profile("tocsin", deadline=None, derandomize=True)
# For make quick: a quarter of the examples, also where a test says how many.
hypothesis_settings.register_profile("quick", deadline=None, derandomize=True, max_examples=25)
# Other examples every time, and many of them, for who looks for what nobody has thought of.
hypothesis_settings.register_profile("search", deadline=None, max_examples=1000)
hypothesis_settings.load_profile("tocsin")

# A shell ignores Ctrl-C for what it runs in the background, and whatever that starts would ignore it as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
start_quickly()


# What a fixture starts, the tests that ask for it need: so a tier of tests can be chosen with -m.
_STARTED = {
    "spark": "spark",
    "browse": "browser",
    "postgresql": "postgresql",
    "kafka": "kafka",
    "s3": "s3",
    "sandbox": "server",
}
# Where nearly every test has servers of ours in its own process, and calls them over sockets.
_SERVING = (
    "tests/broker/server/",
    "tests/coordinator/server/",
    "tests/data/server/",
    "tests/data/sharing/",
    "tests/http/",
    "tests/local/",
    "tests/overlay/client/",
    "tests/overlay/server/",
)


# Whose tests start many processes: they run one after the other, so that at most one of each folder is at work.
_TOGETHER = ("tests/e2e/", "tests/hosts/", "tests/network/")
_SLOW = ("process", "slow")
# Threads that libraries begin on another host stay there, so no test comes after these in their process.
_ELSEWHERE = "tests/hosts/"
_QUICK, _LAST = len(_SLOW) + 2, len(_SLOW) + 3


# First, for the plugin that spreads tests over processes reads the groups after us.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test by what it starts, unless it says so itself, and by what it is to share a process with.

    Groups are begun in the order of their tests, and those that take longest come first.
    """
    on_spark = {_file(item) for item in items if "spark" in getattr(item, "fixturenames", ())}
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in _STARTED:
                item.add_marker(_STARTED[fixture])
        if _file(item).startswith(_SERVING):
            item.add_marker("server")
        # Where a fixture has the server as one of its parameters, it asks for it only when it is that one's turn.
        for server in {"postgresql", "kafka", "s3"} & _parameters(item):
            item.add_marker(server)
    groups = {item: _group(item, on_spark) for item in items}
    turns: dict[str, int] = {}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
        turns[group] = min(turns.get(group, _LAST), _turn(item, group))
    items.sort(key=lambda item: turns[groups[item]])


def _group(item: pytest.Item, on_spark: set[str]) -> str:
    """The tests of a file stay together, for its fixtures, and all files that run on Spark, for it starts slowly."""
    file = _file(item)
    if file in on_spark:
        return "spark"
    return next((folder for folder in _TOGETHER if file.startswith(folder)), file)


def _turn(item: pytest.Item, group: str) -> int:
    """Spark first, then processes of ours, then all that is quick; other hosts last."""
    if group == "spark":
        return 0
    if group in _TOGETHER:
        return _LAST if group == _ELSEWHERE else 1
    return next((turn for turn, marker in enumerate(_SLOW, 2) if item.get_closest_marker(marker)), _QUICK)


def _parameters(item: pytest.Item) -> set[object]:
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    return {value for value in values if isinstance(value, str)}


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(variable)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Defaults, with a data directory of the test's own and any free port."""
    return Settings(data=DataSettings(directory=tmp_path / "data", port=0))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server for all tests; each takes a database of its own, and leaves the server running."""
    with postgresql_server() as running:
        yield running


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """A Kafka server for all tests; each has topics of its own, and leaves the server running."""
    with kafka_server() as running:
        yield running


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server for all tests; each has a folder of its own, and leaves the server running."""
    with s3_server() as running:
        yield running
