"""A small random world with everything that makes queries go wrong: NULLs, duplicates, ties, points on cell borders."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tocsin.data.compiler import query
from tocsin.data.compiler.rewrite import fresh
from tocsin.data.language.parser import CreateChannel, CreateDataset, parse
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Channel, Dataset

_DATASETS = """
CREATE DATASET Reports (id STRING, etype STRING, severity INT, x DOUBLE, y DOUBLE, message STRING, at TIMESTAMP)
  PRIMARY KEY id;
CREATE DATASET Quotes (symbol STRING, price DOUBLE, volume BIGINT, tags ARRAY<STRING>, traded DATE);
CREATE KEYED DATASET Users (userId STRING, x DOUBLE, y DOUBLE, reach DOUBLE, city STRING) PRIMARY KEY userId;
CREATE REFERENCE DATASET Shelters (id STRING, name STRING, x DOUBLE, y DOUBLE, capacity INT) PRIMARY KEY id;
"""
_NEW = 12

Channels = Callable[[str, str], Channel]


@pytest.fixture(scope="session")
def datasets() -> Mapping[str, Dataset]:
    """Reports and Quotes grow, Users moves, Shelters stays."""
    statements = [s for s in parse(_DATASETS) if isinstance(s, CreateDataset)]
    return {s.definition.name: s.definition for s in statements}


@pytest.fixture(scope="session")
def channel() -> Channels:
    """Makes a channel of its parameters and its body, read as in an application file."""

    def make(parameters: str, body: str) -> Channel:
        (statement,) = parse(f"CREATE CONTINUOUS CHANNEL Zoo({parameters}) AS {body}")
        assert isinstance(statement, CreateChannel)
        return statement.definition

    return make


@pytest.fixture(scope="session")
def session(spark: SparkSession) -> SparkSession:
    """A session that interprets its queries: compiling each costs more than these few rows."""
    session = spark.newSession()
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for setting, value in (query.SETTINGS | interpreted).items():
        session.conf.set(setting, value)
    return session


@pytest.fixture(scope="session")
def views(
    session: SparkSession, datasets: Mapping[str, Dataset], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The datasets of the world, and what is new of them, as Spark reads them: from Parquet files."""
    directory, chance = tmp_path_factory.mktemp("world"), random.Random(2)
    records = {"Reports": _reports(chance), "Quotes": _quotes(chance), "Users": _users(chance)}
    bound: dict[str, str] = {}
    for name, rows in (*records.items(), ("Shelters", _shelters(chance))):
        bound[name] = _view(session, directory, datasets[name], f"zoo_{name}", rows)
        bound[fresh(name)] = _view(session, directory, datasets[name], f"zoo_new_{name}", rows[-_NEW:])
    return bound


@pytest.fixture(scope="session")
def quiet_views(session: SparkSession, views: Mapping[str, str]) -> dict[str, str]:
    """The same world when nothing is new, which Spark can see while it plans."""
    quiet: dict[str, str] = {}
    for name, view in views.items():
        quiet[name] = f"{view}_quiet" if name.startswith("__") else view
        session.sql(f"SELECT * FROM {view} WHERE false").createOrReplaceTempView(f"{view}_quiet")
    return quiet


def _view(session: SparkSession, directory: Path, dataset: Dataset, view: str, rows: list[dict[str, object]]) -> str:
    schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in dataset.columns])
    pq.write_table(pa.Table.from_pylist(rows, schema), directory / f"{view}.parquet")
    session.read.parquet(str(directory / f"{view}.parquet")).createOrReplaceTempView(view)
    return view


def _reports(chance: random.Random) -> list[dict[str, object]]:
    return [
        {
            "id": f"r{i}",
            "etype": chance.choice(["fire", "flood", "storm", None]),
            "severity": chance.choice([1, 2, 3, 4, None]),
            **_place(chance),
            "message": chance.choice(["run", "; DROP event --", "it's 'from' here", "", None]),
            "at": datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=chance.randrange(10)),
        }
        for i in range(40)
    ]


def _quotes(chance: random.Random) -> list[dict[str, object]]:
    return [
        {
            "symbol": chance.choice(["A", "B", "C", None]),
            "price": chance.choice([1.25, 2.5, 2.5, 10.0, None]),
            "volume": chance.choice([1, 2, 10**12, None]),
            "tags": chance.choice([["hot", "new"], ["hot"], [], None]),
            "traded": date(2026, 1, 1 + chance.randrange(3)),
        }
        for _ in range(40)
    ]


def _users(chance: random.Random) -> list[dict[str, object]]:
    return [
        {
            "userId": f"u{i}",
            **_place(chance),
            "reach": chance.choice([0.0, 5.0, 12.5, 100.0, -5.0, None]),
            "city": chance.choice(["Oulu", "oulu", None]),
        }
        for i in range(20)
    ]


def _shelters(chance: random.Random) -> list[dict[str, object]]:
    return [
        {"id": f"s{i}", "name": f"Hall {i % 5}", **_place(chance), "capacity": chance.choice([10, 50, None])}
        for i in range(15)
    ]


def _place(chance: random.Random) -> dict[str, object]:
    """Multiples of 5, so that many points are exactly as far apart as the radii ask for."""
    return {axis: chance.choice([None, *([step * 5.0 for step in range(-6, 7)] * 2)]) for axis in ("x", "y")}
