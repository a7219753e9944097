from __future__ import annotations

from pathlib import Path

from tests.experiment.trial import Square
from tocsin.experiment.table import append, columns, file_of, read


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / file_of(Square)
    append(path, Square, "first", [Square(3, 9.0, True), Square(4, 16.25, False)])
    append(path, Square, "second, with a comma", [Square(-5, 25.0, True)])
    assert list(read(path, Square)) == [
        ("first", Square(3, 9.0, True)),
        ("first", Square(4, 16.25, False)),
        ("second, with a comma", Square(-5, 25.0, True)),
    ]


def test_a_file_begins_with_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / file_of(Square)
    append(path, Square, "first", [Square(3, 9.0, True)])
    assert path.name == "squares.csv"
    assert path.read_text(encoding="utf-8").splitlines()[0] == "cell,number,square,odd"


def test_columns_say_what_they_mean() -> None:
    assert columns(Square) == {
        "number": "any <number>",
        "square": "the number times itself",
        "odd": "whether it is odd",
    }


def test_a_table_without_a_file_has_no_rows(tmp_path: Path) -> None:
    assert list(read(tmp_path / "none.csv", Square)) == []
