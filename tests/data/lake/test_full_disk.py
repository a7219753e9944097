"""A full disk costs a table an error and nothing else: it says so, and goes on when there is room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mounting import own_file_system

FULL = """
import sys
from pathlib import Path
import pyarrow as pa
from tocsin.data.lake.table import Table
from tocsin.errors import StorageError

directory = Path(sys.argv[1])
ballast = directory / "ballast"
ballast.write_bytes(bytes(500_000))
schema = pa.schema([("key", pa.int64()), ("text", pa.string())])
tables = [Table(directory / name, schema) for name in ("appended", "merged")]
accepted = [0, 0]

def rows(number):
    import os
    return pa.table({"key": [number], "text": [os.urandom(10_000).hex()]}, schema=schema)

def commit(index, number):
    if index == 0:
        tables[0].append(rows(number), {"slice-0": number})
    else:
        tables[1].merge(rows(number), "key", {"slice-0": number})

def fill(index):
    while True:
        try:
            commit(index, accepted[index] + 1)
        except StorageError as error:
            print(error, file=sys.stderr)
            return
        accepted[index] += 1

def check(table, count):
    assert (table.version, table.marker("slice-0")) == (count, count)
    assert sorted(table.read()["key"].to_pylist()) == list(range(1, count + 1))

for index in (1, 0, 1, 0):
    fill(index)
    check(tables[index], accepted[index])
once = list(accepted)
ballast.unlink()
for index, table in enumerate(tables):
    for _ in range(3):
        commit(index, accepted[index] + 1)
        accepted[index] += 1
    check(table, accepted[index])
    check(Table(table.path, schema), accepted[index])
print(once)
"""


@pytest.mark.process
def test_a_really_full_disk_is_told_and_room_is_used_again(tmp_path: Path) -> None:
    done = run(*own_file_system(tmp_path, "1500k"), sys.executable, "-c", FULL, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the disk is full; free some space, and it goes on by itself") == 4, done.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=120, check=False)
