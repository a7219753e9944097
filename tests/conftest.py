"""What every test may rely on: no settings leak in from outside, and Spark's workers run this interpreter."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from tocsin.settings import DataSettings, Settings

# A shared machine may stall any example; slow code is for the benchmarks to find.
hypothesis_settings.register_profile("tocsin", deadline=None)
hypothesis_settings.load_profile("tocsin")

# A shell ignores Ctrl-C for what it runs in the background, and whatever that starts would ignore it as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


# What a fixture starts, the tests that ask for it need: so a tier of tests can be chosen with -m.
_STARTED = {"spark": "spark", "browse": "browser", "postgresql": "postgresql"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test by what it starts, unless it says so itself, and by what it is to share a process with."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_company(item)))
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in _STARTED:
                item.add_marker(_STARTED[fixture])
        # Where a fixture has the server as one of its parameters, it asks for it only when it is that one's turn.
        if "postgresql" in getattr(getattr(item, "callspec", None), "params", {}).values():
            item.add_marker("postgresql")


def _company(item: pytest.Item) -> str:
    """The tests of a file stay together, for its fixtures, and all that run on Spark, for it starts slowly."""
    return "spark" if "spark" in getattr(item, "fixturenames", ()) else item.nodeid.partition("::")[0]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(variable)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Defaults, with a data directory of the test's own and any free port."""
    return Settings(data=DataSettings(directory=tmp_path / "data", port=0))
