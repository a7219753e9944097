"""A function runs in a process of its own: whatever it does there, its caller gets an answer in time, and can go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.data.processing import functions
from tests.waiting import until
from tocsin.data.processing.contract import FunctionFaultError, check_given
from tocsin.data.processing.process import FunctionProcess, check_function
from tocsin.errors import InvalidError

SCHEMA = pa.schema([("id", pa.string()), ("value", pa.int64())])
MEMORY = 2 << 30
HERE = "tests.data.processing"


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": f"r{value}", "value": value} for value in values], schema=SCHEMA)


class Functions:
    """Processes for functions of ``functions.py``, ended in the end."""

    def __init__(self) -> None:
        self.started: list[FunctionProcess] = []

    def __call__(self, name: str) -> FunctionProcess:
        self.started.append(FunctionProcess(f"{HERE}.functions:{name}", MEMORY))
        return self.started[-1]


@pytest.fixture
def function() -> Iterator[Functions]:
    made = Functions()
    yield made
    for process in made.started:
        process.close()


pytestmark = pytest.mark.process


def test_what_it_gives_comes_back_and_the_process_stays(function: Functions) -> None:
    doubled = function("doubled")
    assert doubled.run(batch(1, 2, 3), "id", 60)["value"].to_pylist() == [2, 4, 6]
    assert doubled._process is not None
    process = doubled._process.pid
    assert doubled.run(batch(4), None, 60)["value"].to_pylist() == [8]
    assert doubled._process.pid == process
    large = pa.RecordBatch.from_arrays([pa.array(["x" * 1000] * 20_000), pa.array(range(20_000))], schema=SCHEMA)
    assert doubled.run(large, "id", 60).num_rows == 20_000


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "it raised ValueError: thirteen"),
        ("exits", "it raised SystemExit: 3"),
        ("dies", "it ended its process (exit status 3)"),
        ("crashes", "it ended its process (signal SIGSEGV)"),
        ("hoards", "it raised MemoryError"),
        ("closes", "it ended its process"),
        ("babbles", "it ended its process"),
        ("other_columns", "it gave the columns id instead of id, value"),
        ("other_type", "it gave the column value as string instead of int64"),
        ("other_thing", "it gave list, not a pyarrow.RecordBatch"),
        ("too_many", "it gave 100,000 rows for 2 records, of which at most 1,020 are taken"),
        ("without_key", "it gave a row without id, the primary key"),
    ],
)
def test_a_fault_is_told_and_the_next_batch_is_taken(function: Functions, name: str, reason: str) -> None:
    process = function(name)
    assert process.run(batch(1, 2), "id", 60) == batch(1, 2)
    with pytest.raises(FunctionFaultError) as caught:
        process.run(batch(1, functions.BAD), "id", 60)
    assert str(caught.value).startswith(reason)
    assert process.run(batch(3), "id", 60) == batch(3)


def test_one_that_does_not_end_is_ended(function: Functions) -> None:
    process = function("loops")
    process.start()
    assert process._process is not None
    pid = process._process.pid
    with pytest.raises(FunctionFaultError, match=r"it took longer than 0\.2 s"):
        process.run(batch(functions.BAD), "id", 0.2)
    assert not Path(f"/proc/{pid}").exists()
    assert process.run(batch(1), "id", 60) == batch(1)


def test_an_answer_that_comes_twice_counts_once(function: Functions) -> None:
    process = function("splits")
    assert process.run(batch(functions.BAD), "id", 60) == batch(functions.BAD)
    taken: list[pa.RecordBatch] = []
    while len(taken) < 2:
        with suppress(FunctionFaultError):
            taken.append(process.run(batch(len(taken)), "id", 60))
    assert taken == [batch(0), batch(1)]


def test_it_ends_with_its_parent_even_in_an_endless_loop() -> None:
    program = (
        "import pyarrow as pa, sys, threading, os\n"
        "from tests.data.processing.test_process import FunctionProcess, HERE, MEMORY, batch\n"
        "process = FunctionProcess(f'{HERE}.functions:loops', MEMORY)\n"
        "process.start()\n"
        "print(process._process.pid, flush=True)\n"
        "process.run(batch(13), 'id', 600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    until(lambda: not _is_running(pid))


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("tests.nowhere:f", "cannot be imported: ModuleNotFoundError"),
        (f"{HERE}.functions:f", "cannot be imported: AttributeError"),
        (f"{HERE}.functions:BAD", "is no function"),
        (f"{HERE}.functions:Any", "is one of typing: name it there"),
        (f"{HERE}.ending:f", "its module ends the process (exit status 5)"),
    ],
)
def test_a_function_that_cannot_be_imported_is_refused_without_being_imported_here(function: str, reason: str) -> None:
    with pytest.raises(InvalidError) as caught:
        check_function(function, MEMORY)
    assert reason in str(caught.value)


def test_the_function_that_the_page_shows_does_what_it_says() -> None:
    page = (Path(__file__).parents[3] / "docs" / "channels.md").read_text(encoding="utf-8")
    [code] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def celsius" in code]
    names: dict[str, Any] = {}
    exec(code, names)
    schema = pa.schema([("id", pa.string()), ("degrees", pa.float64())])
    rows = [{"id": "a", "degrees": 212.0}, {"id": "b", "degrees": 1000.0}]
    records = pa.RecordBatch.from_pylist(rows, schema=schema)
    given = check_given(names["celsius"](records), records, "id")
    assert given.to_pylist() == [{"id": "a", "degrees": 100.0}]


def test_what_other_libraries_make_of_texts_is_taken_and_columns_are_put_in_order() -> None:
    given = functions.unlike(batch(1, 2))
    assert check_given(given, batch(1, 2), "id") == batch(1, 2)


def test_a_function_may_give_ten_times_as_much_and_some_more() -> None:
    few = batch(*range(100))
    allowed = pa.RecordBatch.from_arrays([pa.array(["a"] * 2000), pa.array(range(2000))], schema=SCHEMA)
    assert check_given(allowed, few, "id").num_rows == 2000
    with pytest.raises(FunctionFaultError, match="2,001 rows for 100 records"):
        check_given(pa.RecordBatch.from_pylist([{"id": "a", "value": 1}] * 2001, schema=SCHEMA), few, "id")
    with pytest.raises(FunctionFaultError, match="bytes for 1 record,"):
        check_given(pa.RecordBatch.from_pylist([{"id": "a" * (5 << 20), "value": 1}], schema=SCHEMA), batch(1), "id")
