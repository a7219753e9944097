"""Application files: applied again they change nothing, and what is refused is refused at its place in the file."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.data.world import DATASETS, FEED, World
from tocsin.data.applying import Applier
from tocsin.errors import StatementError, StorageError
from tocsin.model.messages import StatementOutcome

pytestmark = pytest.mark.spark

CHANNEL = "CREATE CONTINUOUS CHANNEL OfType(event STRING) AS SELECT r.id FROM Reports r WHERE r.etype = event;"


def refused(world: World, text: str, directory: Path | None = None) -> StatementError:
    with pytest.raises(StatementError) as error:
        world.apply(text, directory)
    return error.value


def test_the_emergency_application_applied_twice_is_unchanged(world: World) -> None:
    text = files("tocsin.apps.emergency").joinpath("app.sql").read_text(encoding="utf-8")
    first, second = world.actions(text), world.actions(text)
    assert set(first) == {"created"}
    assert set(second) == {"unchanged"}
    assert len(first) == len(second) == 12
    world.close()
    world.open()
    assert set(world.actions(text)) == {"unchanged"}


@pytest.mark.parametrize(
    ("statement", "old", "new"),
    [
        (DATASETS, "severity INT", "severity BIGINT"),
        (FEED, "4 SLICES", "8 SLICES"),
        (CHANNEL, "SELECT r.id", "SELECT r.*"),
    ],
    ids=["dataset", "feed", "channel"],
)
def test_a_changed_definition_is_reported_left_alone_and_replaced_when_asked_for(
    world: World, statement: str, old: str, new: str
) -> None:
    world.apply(DATASETS + FEED * (statement == FEED) + CHANNEL * (statement == CHANNEL))
    before = {**world.shown("DATASETS"), **world.shown("FEEDS"), **world.shown("CHANNELS")}
    changed = statement.replace(old, new)
    [outcome] = [outcome for outcome in world.apply(changed) if outcome.action != "unchanged"]
    assert outcome.action == "changed"
    assert "CREATE OR REPLACE" in outcome.detail
    assert {**world.shown("DATASETS"), **world.shown("FEEDS"), **world.shown("CHANNELS")} == before
    replacing = changed.replace("CREATE ", "CREATE OR REPLACE ")
    assert [a for a in world.actions(replacing) if a != "unchanged"] == ["replaced"]
    assert set(world.actions(changed)) == {"unchanged"}
    assert set(world.actions(statement)) <= {"changed", "unchanged"}


def test_if_not_exists_leaves_another_definition_alone_and_says_so(world: World) -> None:
    world.apply(DATASETS)
    [outcome] = world.apply("CREATE DATASET IF NOT EXISTS Reports (id STRING) PRIMARY KEY id")
    assert (outcome.action, "another definition" in outcome.detail) == ("unchanged", True)


def test_what_others_depend_on_is_not_dropped(world: World) -> None:
    world.apply(DATASETS + FEED + CHANNEL)
    for statement in ("DROP DATASET Reports", "CREATE OR REPLACE DATASET Reports (id STRING) PRIMARY KEY id"):
        error = refused(world, statement)
        assert "feed reports, channel OfType use it; drop these first" in error.reason
    # Also before the channels are compiled, which takes Spark.
    world.close()
    world.open()
    assert "channel OfType" in refused(world, "DROP DATASET Reports").reason
    assert (
        world.actions("DROP DATASET People; DROP CHANNEL OfType; DROP FEED reports; DROP DATASET Reports")
        == ["dropped"] * 4
    )
    assert world.dropped == ["OfType"]
    assert (world.shown("DATASETS"), world.shown("FEEDS"), world.shown("CHANNELS")) == ({}, {}, {})


def test_dropping_what_is_not_there_is_refused_unless_said_otherwise(world: World) -> None:
    world.apply(DATASETS)
    assert refused(world, "DROP DATASET Report").reason == "there is no dataset Report (did you mean Reports?)"
    assert (
        world.actions("DROP DATASET IF EXISTS Report; DROP CHANNEL IF EXISTS C; DROP FEED IF EXISTS f")
        == ["unchanged"] * 3
    )


def test_a_file_is_loaded_once_and_again_when_it_has_changed(world: World, tmp_path: Path) -> None:
    text = (
        "CREATE REFERENCE DATASET Shelters (id STRING, capacity INT) PRIMARY KEY id; LOAD DATASET Shelters FROM 's.csv'"
    )
    (tmp_path / "s.csv").write_text("id,capacity\na,1\nb,2\n")
    assert world.actions(text, tmp_path) == ["created", "loaded"]
    version = world.catalog.tables["Shelters"].version
    assert world.actions(text, tmp_path) == ["unchanged", "unchanged"]
    assert world.catalog.tables["Shelters"].version == version
    (tmp_path / "s.csv").write_text("id,capacity\nb,3\n")
    assert world.actions(text, tmp_path) == ["unchanged", "loaded"]
    assert world.catalog.tables["Shelters"].read(columns=["id", "capacity"]).to_pylist() == [{"id": "b", "capacity": 3}]


def test_a_file_that_does_not_fit_changes_nothing(world: World, tmp_path: Path) -> None:
    world.apply("CREATE REFERENCE DATASET Shelters (id STRING, capacity INT) PRIMARY KEY id")
    (tmp_path / "s.csv").write_text("id,capacity\na,many\n")
    error = refused(world, "-- shelters\n  LOAD DATASET Shelters FROM 's.csv'", tmp_path)
    assert (error.line, error.column, "capacity" in error.reason) == (2, 3, True)
    assert world.catalog.tables["Shelters"].version == 0
    assert "no file" in refused(world, "LOAD DATASET Shelters FROM 'none.csv'", tmp_path).reason
    assert "the server does not read" in refused(world, "LOAD DATASET Shelters FROM 's.csv'").reason


def test_only_a_reference_dataset_is_loaded(world: World, tmp_path: Path) -> None:
    world.apply(DATASETS + FEED)
    error = refused(world, "LOAD DATASET Reports FROM 's.csv'", tmp_path)
    assert "tocsin publish reports FILE" in error.reason


def test_an_error_in_a_channel_is_placed_in_the_file(world: World) -> None:
    text = (
        DATASETS
        + """
-- A comment of
-- two lines.
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
  SELECT r.id
  FROM Reports r
  WHERE r.etyp = event;"""
    )
    error = refused(world, text)
    lines = text.splitlines()
    assert lines[error.line - 1].strip() == "WHERE r.etyp = event;"
    assert lines[error.line - 1][error.column - 1 :].startswith(("r.etyp", "etyp"))
    assert "etyp" in error.reason
    assert world.shown("DATASETS") == {}
    assert world.actions(text.replace("r.etyp ", "r.etype ")) == ["created"] * 3


def test_an_error_on_the_line_where_the_body_begins_is_placed_behind_what_is_before_it(world: World) -> None:
    text = DATASETS + "   CREATE CONTINUOUS CHANNEL C() AS SELECT r.nothing FROM Reports r"
    error = refused(world, text)
    line = text.splitlines()[error.line - 1]
    assert line[error.column - 1 :].startswith(("r.nothing", "nothing"))


def test_a_file_with_a_syntax_error_changes_nothing(world: World) -> None:
    error = refused(world, DATASETS + "CREATE NONSENSE x")
    assert (error.line, world.shown("DATASETS")) == (4, {})


def test_refusals_are_placed_at_their_statements(world: World) -> None:
    text = DATASETS + FEED + "\n\n  CREATE FEED more INTO Reports"
    error = refused(world, text)
    assert (error.line, error.column) == (6, 3)
    assert "dataset Reports is filled by feed reports already" in error.reason
    assert (
        "needs the records of a key in one slice"
        in refused(world, DATASETS + "CREATE FEED p INTO People SLICED BY likes").reason
    )


def test_names_are_the_same_in_any_case_but_written_as_they_were_created(world: World) -> None:
    world.apply(DATASETS)
    assert world.actions("CREATE FEED reports INTO REPORTS SLICED BY ID INTO 2 SLICES") == ["created"]
    assert "is written Reports so far" in refused(world, "CREATE DATASET reports (id STRING)").reason
    assert world.actions("CREATE CONTINUOUS CHANNEL C() AS SELECT r.ID FROM rEpOrTs r") == ["created"]
    assert "channel C use it" in refused(world, "DROP DATASET rEPORTS").reason
    assert world.actions("DROP CHANNEL c; DROP FEED REPORTS; DROP DATASET reports") == ["dropped"] * 3


def test_what_there_is_can_be_shown_and_described_as_the_statements_that_make_it(world: World) -> None:
    world.apply(DATASETS + FEED + CHANNEL)
    statements = [row["statement"] for what in ("DATASETS", "FEEDS", "CHANNELS") for row in world.shown(what).values()]
    assert set(world.actions(";".join(statements))) == {"unchanged"}
    [outcome] = world.apply("DESCRIBE CHANNEL oftype")
    assert outcome.rows[0]["columns"] == {"id": "string"}
    assert world.shown("FEEDS")["reports"]["dead_letters"] == 0
    assert set(world.shown("BROKERS")) == {"b"}
    [be] = world.attach("OfType", {"event": "fire"})
    assert world.shown("SUBSCRIPTIONS")[str(be)]["parameters"] == {"event": "fire"}


def test_a_file_with_a_mistake_anywhere_changes_nothing(world: World, tmp_path: Path) -> None:
    world.apply(DATASETS + FEED)
    before = {what: world.shown(what) for what in ("DATASETS", "FEEDS", "CHANNELS")}
    first = "DROP FEED reports; CREATE DATASET More (id STRING);\n"
    for mistake in (
        "DROP CHANNEL Nix;",
        "DESCRIBE CHANNEL Nix;",
        "CREATE FEED other INTO Nowhere;",
        "CREATE FEED people INTO People SLICED BY likes;",
        "CREATE CONTINUOUS CHANNEL C(event STRING) AS SELECT r.nix FROM Reports r WHERE r.etype = event;",
        "CREATE CONTINUOUS CHANNEL C(event STRING) AS SELECT r.id FROM Reports r WHERE r.etype = event;"
        "DROP DATASET Reports;",
        "DROP DATASET More; CREATE FEED more INTO More;",
        "CREATE DATASET mORE (id STRING);",
        "LOAD DATASET More FROM 'x.csv';",
        "CREATE REFERENCE DATASET Places (id STRING); LOAD DATASET Places FROM 'none.csv';",
    ):
        assert refused(world, first + mistake, tmp_path).line == 2, mistake
        assert {what: world.shown(what) for what in before} == before, mistake


def test_statements_may_build_on_each_other_and_take_back_what_was_there(world: World) -> None:
    world.apply(DATASETS + FEED + CHANNEL)
    away = "DROP CHANNEL oftype; DROP FEED reports; DROP DATASET Reports;"
    assert world.actions(f"{away} {DATASETS} {FEED} {CHANNEL} DESCRIBE FEED reports") == [
        *["dropped"] * 3,
        "created",
        "unchanged",
        "created",
        "created",
        "shown",
    ]


def test_what_is_carried_out_before_a_failure_has_been_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(world.catalog, "create_feed", full)
    told: list[StatementOutcome] = []
    with pytest.raises(StorageError):
        Applier(world.catalog, world.settings.feeds).apply(DATASETS + FEED + CHANNEL, None, told.append)
    assert [(outcome.statement, outcome.action) for outcome in told] == [
        ("dataset Reports", "created"),
        ("dataset People", "created"),
    ]
    assert world.shown("CHANNELS") == {}


def test_checking_tells_what_would_happen_and_changes_nothing(world: World) -> None:
    checked = Applier(world.catalog, world.settings.feeds).check(DATASETS + FEED + CHANNEL)
    assert [outcome.action for outcome in checked] == ["created"] * 4
    assert world.shown("DATASETS") == {}


def test_checking_a_load_says_of_what_is_loaded_only_what_is_known(world: World) -> None:
    text = "CREATE REFERENCE DATASET Shelters (id STRING) PRIMARY KEY id; LOAD DATASET Shelters FROM 's.csv'"
    _, load = Applier(world.catalog, world.settings.feeds).check(text)
    assert (load.action, load.detail) == ("loaded", "unless it holds that file already")
