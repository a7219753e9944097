from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.data.server.memory import MemoryCluster
from tocsin.cli.parts import parts
from tocsin.data.language.forms import LoadDataset, Statement
from tocsin.errors import ConflictError, StatementError
from tocsin.model.messages import StatementOutcome

APPLICATION = """\
CREATE REFERENCE DATASET Shelters (id STRING, name STRING);   -- where to go
LOAD DATASET Shelters FROM 'shelters.csv';
CREATE CONTINUOUS CHANNEL Of(event STRING) AS
  SELECT * FROM Shelters;
SHOW CHANNELS;
"""


@pytest.fixture
def application(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "shelters.csv").write_bytes(b"id,name\n1,Hall\n")
    file = tmp_path / "app" / "app.sql"
    file.write_text(APPLICATION, encoding="utf-8")
    return file


def test_a_file_is_applied_and_the_files_it_loads_go_along(
    tocsin: Program, cluster: MemoryCluster, application: Path
) -> None:
    applied = tocsin("apply", "app/app.sql")
    assert applied.status == 0
    lines = [line.split() for line in applied.out.splitlines()]
    assert ["dataset", "Shelters", "created"] in lines
    assert ["dataset", "Shelters", "loaded", "2", "rows", "from", "shelters.csv"] in lines
    assert ["channel", "Of", "created"] in lines
    assert cluster.loaded == {"Shelters.csv": b"id,name\n1,Hall\n"}
    again = tocsin("apply", "app/app.sql")
    assert (again.status, "unchanged" in again.out) == (0, True)


def test_what_shows_is_printed_as_a_table(tocsin: Program, cluster: MemoryCluster, application: Path) -> None:
    shown = tocsin("apply", "app/app.sql").out.splitlines()
    heading = shown.index("show channels")
    assert [line.strip() for line in shown[heading + 1 : heading + 3]] == ["name", "Of"]
    assert shown[-2:] == ["CREATE CONTINUOUS CHANNEL Of(event STRING) AS", "SELECT * FROM Shelters;"]


def test_a_definition_that_differs_is_status_1_and_says_what_to_do(
    tocsin: Program, cluster: MemoryCluster, application: Path
) -> None:
    tocsin("apply", "app/app.sql")
    application.write_text("CREATE DATASET Shelters (id STRING)", encoding="utf-8")
    changed = tocsin("apply", "app/app.sql")
    assert (changed.status, "changed" in changed.out, "OR REPLACE" in changed.err) == (1, True, True)


def test_a_mistake_is_shown_with_its_line_and_a_caret_before_anything_is_sent(
    tocsin: Program, cluster: MemoryCluster
) -> None:
    Path("bad.sql").write_text("CREATE DATASET A (id STRING);\n\tCREATE TABLE x;\n", encoding="utf-8")
    refused = tocsin("apply", "bad.sql")
    assert refused.status == 1
    head, line, caret, left_at = refused.err.splitlines()
    assert head.startswith("bad.sql:2:9: expected DATASET")
    assert line.strip() == "CREATE TABLE x;"
    assert caret.index("^") == line.index("TABLE")
    assert left_at == "nothing was changed"
    assert cluster.definitions == {}


def test_what_the_server_refuses_is_shown_at_its_place_in_the_whole_file(
    tocsin: Program, cluster: MemoryCluster, application: Path
) -> None:
    application.write_text(APPLICATION + "CREATE FEED f INTO Nowhere;", encoding="utf-8")
    refused = tocsin("apply", "app/app.sql")
    assert refused.status == 1
    assert "app/app.sql:6:1: there is no dataset Nowhere" in refused.err
    assert "CREATE FEED f INTO Nowhere;" in refused.err
    assert refused.err.endswith("nothing was changed\n")
    assert (cluster.definitions, cluster.loaded) == ({}, {}), "the whole file is checked before its first part is sent"


@pytest.mark.parametrize(
    ("path", "reason"), [("none.csv", "cannot be read: No such file"), ("app.sql", "the name must end in .csv")]
)
def test_a_file_that_cannot_be_loaded_is_shown_at_its_statement(
    tocsin: Program, cluster: MemoryCluster, application: Path, path: str, reason: str
) -> None:
    application.write_text(APPLICATION.replace("shelters.csv", path), encoding="utf-8")
    refused = tocsin("apply", "app/app.sql")
    assert refused.status == 1
    assert refused.err.startswith("app/app.sql:2:1: ")
    assert reason in refused.err
    assert (refused.out, cluster.definitions) == ("", {})


def test_what_was_carried_out_before_something_fails_is_told_together_with_the_failure(
    tocsin: Program, cluster: MemoryCluster, application: Path
) -> None:
    cluster.full_at = "Of"
    failed = tocsin("apply", "app/app.sql")
    assert failed.status == 1
    assert [line.split()[:3] for line in failed.out.splitlines()[1:]] == [
        ["dataset", "Shelters", "created"],
        ["dataset", "Shelters", "loaded"],
    ]
    assert failed.err == "error: the disk is full\n"
    application.write_text("CREATE DATASET A (id STRING); DROP DATASET A; " + APPLICATION, encoding="utf-8")
    cluster.full_at = "Shelters"
    failed = tocsin("apply", "app/app.sql")
    assert [line.split()[:3] for line in failed.out.splitlines()[1:]] == [
        ["dataset", "A", "created"],
        ["dataset", "A", "dropped"],
    ]


def test_a_dry_run_says_what_would_happen_and_changes_nothing(
    tocsin: Program, cluster: MemoryCluster, application: Path
) -> None:
    dry = tocsin("apply", "app/app.sql", "--dry-run")
    assert (dry.status, cluster.definitions, cluster.loaded) == (0, {}, {})
    assert "what would happen" in dry.out
    assert ["channel", "Of", "created"] in [line.split() for line in dry.out.splitlines()]


def test_a_file_without_statements_is_said_to_be_one(tocsin: Program, cluster: MemoryCluster) -> None:
    applied = tocsin("apply", "-", stdin=b"-- to be done\n")
    assert (applied.status, applied.out, applied.err) == (0, "", "there is no statement in it\n")


def test_one_thing_is_described_line_by_line(
    tocsin: Program, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    columns = {f"column{number}": "string" for number in range(9)}
    described = {"name": "Of", "kind": "repetitive", "by_nodes": 0, "columns": columns, "statement": "CREATE …"}

    async def describe(_: Statement) -> StatementOutcome:
        return StatementOutcome("channel Of", "shown", "", [described])

    monkeypatch.setattr(cluster, "_outcome", describe)
    _, *facts = tocsin("apply", "-", stdin=b"DESCRIBE CHANNEL Of").out.split("channel Of\n")[1].splitlines()
    assert [fact.split()[0] for fact in facts[:2]] == ["kind", "columns"]
    assert facts[1].split()[1].startswith('{"column0":"string","column1":')


@pytest.mark.parametrize("rows", [b"id,name\n1\n", b"id,nme\n1,Hall\n", b"id,name\n\xff,Hall\n"])
def test_a_file_whose_content_does_not_fit_is_refused_before_anything_is_changed(
    tocsin: Program, cluster: MemoryCluster, application: Path, rows: bytes
) -> None:
    (application.parent / "shelters.csv").write_bytes(rows)
    refused = tocsin("apply", "app/app.sql")
    assert refused.status == 1
    assert refused.err.startswith("app/app.sql:2:1: shelters.csv: ")
    assert refused.err.endswith("nothing was changed\n")
    assert (refused.out, cluster.definitions, cluster.loaded) == ("", {}, {})


def test_a_refused_load_is_shown_at_its_statement(tocsin: Program, cluster: MemoryCluster, application: Path) -> None:
    application.write_text("\nLOAD DATASET Unknown FROM 'shelters.csv'", encoding="utf-8")
    assert "app/app.sql:2:1: there is no dataset Unknown" in tocsin("apply", "app/app.sql").err


def test_other_refusals_are_one_line(tocsin: Program, cluster: MemoryCluster, application: Path) -> None:
    cluster.failing = ConflictError("others depend on it")
    refused = tocsin("apply", "app/app.sql")
    assert (refused.status, refused.err) == (1, "error: others depend on it\n")
    refused = tocsin("apply", "app/app.sql", "--token", "publisher")
    assert (refused.status, "the role admin" in refused.err) == (1, True)


def test_statements_may_come_from_standard_input(tocsin: Program, cluster: MemoryCluster) -> None:
    assert tocsin("apply", "-", stdin=b"CREATE DATASET A (id STRING)").status == 0
    assert list(cluster.definitions) == ["A"]


def test_a_file_that_is_missing_or_no_text_is_one_line(tocsin: Program) -> None:
    assert tocsin("apply", "none.sql").err == "error: none.sql cannot be read: No such file or directory\n"
    Path("bytes.sql").write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in tocsin("apply", "bytes.sql").err


def test_a_server_that_is_not_there_is_named_with_what_to_do(tocsin: Program, application: Path) -> None:
    away = tocsin("apply", "app/app.sql", "--server", "http://127.0.0.1:9")
    assert away.status == 1
    assert away.err.startswith("error: no answer from http://127.0.0.1:9 (")
    assert "is 'tocsin data' or 'tocsin up' running there?" in away.err


def test_parts_keep_the_places_of_the_whole_file() -> None:
    first, load, rest = parts(APPLICATION)
    assert isinstance(first, str)
    assert first == "CREATE REFERENCE DATASET Shelters (id STRING, name STRING)"
    assert isinstance(load, LoadDataset)
    assert (load.line, load.path) == (2, "shelters.csv")
    assert isinstance(rest, str)
    assert rest.splitlines()[2:] == APPLICATION.removesuffix(";\n").splitlines()[2:]
    assert not "".join(rest.splitlines()[:2]).strip()


def test_a_file_with_a_mistake_has_no_parts() -> None:
    with pytest.raises(StatementError):
        parts("SHOW FEEDS; nonsense")
