from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.errors import StorageError
from tocsin.local.journal import Complaint, Journal

AT = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "log" / "b1.log")


def test_warnings_and_errors_are_read_once_and_the_rest_is_left_out(journal: Journal) -> None:
    with journal.open() as file:
        file.write(f"{AT} info    tocsin.x: fine\n{AT} warning tocsin.x: odd where=here\nTraceback\n".encode())
        file.write(f"{AT} error   tocsin.x: broken\n".encode())
    assert journal.complaints() == [Complaint("warning", "odd where=here"), Complaint("error", "broken")]
    assert journal.complaints() == []


def test_a_refused_call_is_no_complaint(journal: Journal) -> None:
    with journal.open() as file:
        file.write(f"{AT} warning tocsin.http: call answered method=GET path=/health status=503\n".encode())
    assert journal.complaints() == []


def test_a_line_is_read_when_all_of_it_is_there(journal: Journal) -> None:
    with journal.open() as file:
        file.write(f"{AT} warning tocsin.x: half".encode())
        file.flush()
        assert journal.complaints() == []
        file.write(b" and half\n")
    assert journal.complaints() == [Complaint("warning", "half and half")]


def test_what_an_earlier_run_wrote_is_not_read_again(journal: Journal) -> None:
    with journal.open() as file:
        file.write(f"{AT} warning tocsin.x: old\n".encode())
    again = Journal(journal.path)
    with again.open() as file:
        file.write(b"new\n")
    assert again.complaints() == []
    assert again.last() == ["new"]


def test_a_log_that_is_not_there_says_nothing(journal: Journal) -> None:
    assert (journal.complaints(), journal.last()) == ([], [])


def test_bytes_that_are_no_text_do_no_harm(journal: Journal) -> None:
    with journal.open() as file:
        file.write(b"\xff\xfe\n")
    assert journal.complaints() == []
    assert len(journal.last()) == 1


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written: File exists; choose another directory"):
        Journal(tmp_path / "file" / "b1.log").open()


def test_a_log_is_for_nobody_else_to_read_also_one_of_before(tmp_path: Path) -> None:
    place = tmp_path / "log"
    place.mkdir(mode=0o755)
    (place / "data.log").touch(mode=0o644)
    for name in ("data.log", "new.log"):
        Journal(place / name).open().close()
        assert (place / name).stat().st_mode & 0o777 == 0o600
    assert place.stat().st_mode & 0o777 == 0o700
