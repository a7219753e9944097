"""Files for LOAD DATASET: taken as a whole, or refused with the row and column."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tocsin.errors import InvalidError, NotFoundError
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Column, Dataset, DatasetKind
from tocsin.schema.loading import load_file
from tocsin.schema.types import parse_type


def dataset(kind: DatasetKind = DatasetKind.REFERENCE, key: str | None = "id", **columns: str) -> Dataset:
    types = tuple(Column(name, parse_type(text)) for name, text in {"id": "STRING", **columns}.items())
    return Dataset("Shelters", kind, types, key)


SHELTERS = dataset(name="STRING", x="DOUBLE", capacity="INT")
EVERYTHING = dataset(b="BOOLEAN", f="FLOAT", n="DECIMAL(6, 2)", day="DATE", at="TIMESTAMP")
ROW = {
    "id": "a",
    "b": True,
    "f": 0.5,
    "n": Decimal("1.50"),
    "day": date(2026, 1, 31),
    "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_csv_is_read_with_the_datasets_types_and_column_order(write: Any) -> None:
    path = write("a.csv", 'capacity,id,x,name\n5,a,1,"Hall, big"\n,b,2.5,\n')
    table = load_file(SHELTERS, path)
    assert table.schema == pa.schema([(column.name, arrow_type(column.type)) for column in SHELTERS.columns])
    assert table.to_pylist() == [
        {"id": "a", "name": "Hall, big", "x": 1.0, "capacity": 5},
        {"id": "b", "name": None, "x": 2.5, "capacity": None},
    ]


def test_csv_tells_no_value_from_empty_text_and_takes_words_such_as_na_literally(write: Any) -> None:
    path = write("a.csv", '\ufeffid,name,x,capacity\na,,,\nb,"",,\nc,NA,,\n')
    assert load_file(SHELTERS, path)["name"].to_pylist() == [None, "", "NA"]


@pytest.mark.parametrize("at", ["2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", "2026-01-31 12:00:00Z"])
def test_csv_takes_every_type_in_the_forms_a_record_may_have(write: Any, at: str) -> None:
    path = write("a.csv", f"id,b,f,n,day,at\na,true,0.5,1.50,2026-01-31,{at}\n")
    assert load_file(EVERYTHING, path).to_pylist() == [ROW]


@pytest.mark.parametrize("name", ["a.json", "a.ndjson"])
def test_json_and_its_lines_are_read_by_the_rules_for_publications(write: Any, name: str) -> None:
    record = {**ROW, "n": "1.50", "at": "2026-01-31T14:00:00+02:00"}
    text = json.dumps(record, default=str)
    assert load_file(EVERYTHING, write(name, text)).to_pylist() == [ROW]


def test_nested_values_are_loaded_from_json(write: Any) -> None:
    nested = dataset(v="ARRAY<STRUCT<at: TIMESTAMP, m: MAP<STRING, INT>>>")
    path = write("a.json", '[{"id": "a", "v": [{"at": "2026-01-31T12:00:00Z", "m": {"k": 1}}, null]}, {"id": "b"}]')
    assert load_file(nested, path).to_pylist() == [
        {"id": "a", "v": [{"at": datetime(2026, 1, 31, 12, tzinfo=UTC), "m": [("k", 1)]}, None]},
        {"id": "b", "v": None},
    ]


def test_parquet_is_cast_without_loss(tmp_path: Path) -> None:
    columns = {
        "at": pa.array([datetime(2026, 1, 31, 12, tzinfo=UTC)], pa.timestamp("ns", "Europe/Berlin")),
        "id": pa.array(["a"]).dictionary_encode(),
        "b": [True],
        "f": pa.array([0.5], pa.float64()),
        "n": pa.array([Decimal("1.5")]),
        "day": [date(2026, 1, 31)],
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert load_file(EVERYTHING, tmp_path / "a.parquet").to_pylist() == [ROW]


NAIVE = pa.array([datetime(2026, 1, 31, 12)], pa.timestamp("us"))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("type_", "values", "said"),
    [
        ("TIMESTAMP", NAIVE, "it has no zone; write the column as a time in UTC"),
        ("TIMESTAMP", pa.array([date(2026, 1, 31)]), "it has no zone"),
        ("TIMESTAMP", pa.array([5]), "it has no zone"),
        ("TIMESTAMP", pa.array([1_234_567], pa.timestamp("ns", "UTC")), "would lose data"),
        ("DATE", NAIVE, "the time of day would be lost"),
        ("DECIMAL(10, 2)", pa.array([0.125]), "digits would be rounded; write the column as a decimal"),
        ("DECIMAL(10, 2)", pa.array([Decimal("0.125")]), "would cause data loss"),
        ("DOUBLE", pa.array([2**53 + 1]), "9007199254740993 not in range"),
        ("ARRAY<TIMESTAMP>", pa.ListArray.from_arrays([0, 1], NAIVE), "it has no zone"),
        ("STRUCT<at: TIMESTAMP>", pa.StructArray.from_arrays([NAIVE], ["at"]), "it has no zone"),
    ],
)
def test_parquet_whose_values_would_change_is_refused(tmp_path: Path, type_: str, values: pa.Array, said: str) -> None:
    parquet.write_table(pa.table({"id": ["a"], "v": values}), tmp_path / "a.parquet")
    with pytest.raises(InvalidError, match=f"column 'v': .*{said}"):
        load_file(dataset(v=type_), tmp_path / "a.parquet")


@pytest.mark.parametrize("row", ["0.125,2026-01-31T12:00:00Z", "0.50,2026-01-31T12:00:00"])
def test_csv_whose_values_would_change_is_refused(write: Any, row: str) -> None:
    with pytest.raises(InvalidError, match="Row #2: expected"):
        load_file(dataset(n="DECIMAL(10, 2)", at="TIMESTAMP"), write("a.csv", f"id,n,at\na,{row}\n"))


def test_parquet_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    table = pa.table({"id": ["a"], "name": ["b"], "x": [1.0], "capacity": pa.array([3_000_000_000])})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidError, match="column 'capacity': int64 does not fit INT"):
        load_file(SHELTERS, tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "id,name,x,capacity\na,b,1,5\nb,c,2,many\n", r"column 'capacity': Row #3: .*'many'"),
        ("a.csv", "id,name,x,capacity\na,b,1,5,6\n", "Row #2: Expected 4 columns, got 5"),
        ("a.csv", "id,name,x,capacty\n", r'unknown column "capacty" \(did you mean capacity\?\)'),
        ("a.csv", "id,name,x\n", "missing column capacity"),
        ("a.csv", "id,name,x,capacity,id\n", "occurs twice"),
        ("a.csv", "id,name,x,capacity\na,b,nan,1\n", "column 'x': NaN and infinity"),
        ("a.csv", b"id,name,x,capacity\na,\xff,1,1\n", "column 'name': Row #2"),
        ("a.csv", b"\xff\xfe", "a.csv: "),
        ("a.csv", "", "the first row must name the columns"),
        ("a.csv", "id,name,x,capacity\na,b,1,1\n,c,1,1\n", "record 2: primary key 'id' is empty"),
        ("a.csv", "id,name,x,capacity\na,b,1,1\na,c,1,1\n", '"a" occurs more than once'),
        ("a.json", '[{"id": "a"}, {"id": "b", "x": "far"}]', "record 2: field 'x': expected DOUBLE, got \"far\""),
        ("a.json", '[{"id": "a"}, ', "the body is not JSON"),
        ("a.ndjson", '{"id": "a"}\n{"id": ', "record 2: not JSON"),
        ("a.ndjson", '{"x": "a"}\n' * 5, "and 2 more"),
        ("a.parquet", b"PAR1 it is not", "a.parquet: "),
        ("a.xlsx", "", r"must end in \.csv, \.json"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_place(
    write: Any, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(InvalidError, match=said):
        load_file(SHELTERS, write(name, content))


def test_a_bad_time_in_csv_is_refused_with_its_row(write: Any) -> None:
    path = write("a.csv", "id,b,f,n,day,at\na,,,,,\nb,,,,,noon\n")
    with pytest.raises(InvalidError, match="column 'at': Row #3: expected TIMESTAMP"):
        load_file(EVERYTHING, path)


def test_csv_cannot_hold_nested_columns(write: Any) -> None:
    with pytest.raises(InvalidError, match="column 'v' is ARRAY<INT>, which CSV cannot hold"):
        load_file(dataset(v="ARRAY<INT>"), write("a.csv", "id,v\na,1\n"))


def test_a_key_may_repeat_where_the_newest_record_counts(write: Any) -> None:
    locations = dataset(DatasetKind.KEYED, x="DOUBLE")
    assert load_file(locations, write("a.csv", "id,x\na,1\na,2\n")).num_rows == 2


def test_a_dataset_without_primary_key_takes_any_rows(write: Any) -> None:
    assert load_file(dataset(key=None), write("a.csv", "id\na\na\n")).num_rows == 2


@pytest.mark.parametrize("suffix", ["csv", "json", "ndjson", "parquet"])
def test_a_file_that_is_not_there_is_not_found(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(NotFoundError, match=f"no file .*nowhere.{suffix}"):
        load_file(SHELTERS, tmp_path / f"nowhere.{suffix}")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(InvalidError, match="cannot read"):
        load_file(SHELTERS, tmp_path / "a.csv")
