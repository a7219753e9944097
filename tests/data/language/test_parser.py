"""Application files: what is understood, what is refused and where, and that rendering is parsing's inverse."""

from __future__ import annotations

import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.language.parser import (
    CreateChannel,
    CreateDataset,
    CreateFeed,
    Describe,
    Drop,
    Listing,
    LoadDataset,
    Show,
    Statement,
    Thing,
    parse,
)
from tocsin.data.language.render import render
from tocsin.errors import StatementError
from tocsin.model.terms import Terms
from tocsin.schema.definitions import Channel, ChannelKind, Column, Dataset, DatasetKind, Definition, Feed
from tocsin.schema.types import ColumnType, Kind, parse_type


def one(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


def channel(text: str) -> Channel:
    statement = one(text)
    assert isinstance(statement, CreateChannel)
    return statement.definition


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, parse_type(text)) for name, text in types.items())


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("CREATE DATASET D (id STRING, x ARRAY<ARRAY<INT>>)", DatasetKind.APPEND, None),
        ("create dataset D (id text, x array<array<integer>>) primary key ID", DatasetKind.APPEND, "id"),
        ("CREATE KEYED DATASET D (id STRING, x ARRAY<ARRAY<INT>>) PRIMARY KEY id", DatasetKind.KEYED, "id"),
        ("CREATE REFERENCE DATASET D(id STRING,x ARRAY<ARRAY<INT>>)", DatasetKind.REFERENCE, None),
        (
            "CREATE DATASET D (id STRING, -- one;\n x ARRAY< /* two */ ARRAY<INT> >) PRIMARY /* ; */ KEY id",
            "append",
            "id",
        ),
    ],
)
def test_datasets(text: str, kind: DatasetKind, key: str | None) -> None:
    expected = Dataset("D", DatasetKind(kind), columns(id="STRING", x="ARRAY<ARRAY<INT>>"), key)
    assert one(text) == CreateDataset(line=1, column=1, text=text, definition=expected)


def test_a_definition_may_replace_or_give_way_to_an_existing_one() -> None:
    replacing, yielding = parse("CREATE OR REPLACE DATASET d (a INT); CREATE FEED IF NOT EXISTS f INTO d")
    assert isinstance(replacing, CreateDataset)
    assert (replacing.or_replace, replacing.if_not_exists) == (True, False)
    assert isinstance(yielding, CreateFeed)
    assert (yielding.or_replace, yielding.if_not_exists) == (False, True)


REPORTS = Dataset(
    "Reports",
    DatasetKind.APPEND,
    columns(id="STRING", Kind="STRING", tags="ARRAY<STRING>", number="INT", x="DOUBLE", price="DECIMAL(9, 2)"),
    "id",
)


@pytest.mark.parametrize(
    ("text", "feed"),
    [
        ("CREATE FEED f INTO Reports SLICED BY kind INTO 4 SLICES", Feed("f", "Reports", "Kind", 4)),
        ("create feed f into reports into 1 slice", Feed("f", "Reports", "id", 1)),
        ("CREATE FEED f INTO Reports SLICED BY id", Feed("f", "Reports", "id", 16)),
        ("CREATE FEED f INTO Reports INTO 3 SLICES FROM KAFKA 'a-b.c'", Feed("f", "Reports", "id", 3, topic="a-b.c")),
        ("CREATE FEED f INTO Reports", Feed("f", "Reports", "id", 16)),
        ("CREATE FEED f INTO Reports SLICED BY ID, kind", Feed("f", "Reports", "id, Kind", 16)),
        ("CREATE FEED f INTO Reports SLICED BY id USING hash", Feed("f", "Reports", "id", 16)),
        ("CREATE FEED f INTO Reports SLICED USING Random INTO 2 SLICES", Feed("f", "Reports", "", 2, using="random")),
        ("CREATE FEED f INTO Reports SLICED BY kind USING random", Feed("f", "Reports", "", 16, using="random")),
        (
            "CREATE FEED f INTO Reports SLICED BY number USING modulo",
            Feed("f", "Reports", "number", 16, using="modulo"),
        ),
        (
            "CREATE FEED f INTO Reports SLICED BY x, number USING grid(0.50) INTO 64 SLICES",
            Feed("f", "Reports", "x, number", 64, using="grid:0.5"),
        ),
        ("CREATE FEED f INTO Reports SLICED USING 'a.b:c'", Feed("f", "Reports", "id", 16, using="a.b:c")),
        (
            "CREATE FEED f INTO Reports INTO 2 SLICES PROCESSED BY 'a:b' FOR SUBSCRIBERS",
            Feed("f", "Reports", "id", 2, Terms(), processed_by="a:b"),
        ),
        (
            "CREATE FEED f INTO Reports FROM KAFKA 't' PROCESSED BY 'a:b'",
            Feed("f", "Reports", "id", 16, topic="t", processed_by="a:b"),
        ),
    ],
)
def test_a_feed_takes_from_its_dataset_what_it_does_not_say(text: str, feed: Feed) -> None:
    statement = one(text)
    assert isinstance(statement, CreateFeed)
    assert statement.feed(REPORTS, 16) == feed


@pytest.mark.parametrize(
    ("text", "dataset", "said"),
    [
        ("CREATE FEED f INTO D SLICED BY kid", REPORTS, "has no column 'kid' to slice by (did you mean Kind?)"),
        ("CREATE FEED f INTO D SLICED BY tags", REPORTS, "slice by a column of single values"),
        ("CREATE FEED f INTO D", Dataset("D", DatasetKind.APPEND, columns(a="INT")), "say SLICED BY"),
        ("CREATE FEED f INTO D", Dataset("D", DatasetKind.REFERENCE, columns(a="INT"), "a"), "LOAD DATASET"),
    ],
)
def test_a_feed_that_does_not_fit_its_dataset_is_refused_at_its_place(text: str, dataset: Dataset, said: str) -> None:
    statement = one("\n  " + text)
    assert isinstance(statement, CreateFeed)
    with pytest.raises(StatementError, match=re.escape(said)) as caught:
        statement.feed(dataset, 16)
    assert (caught.value.line, caught.value.column) == (2, 3)


@pytest.mark.parametrize(
    ("slicing", "said"),
    [
        ("SLICED USING modulo", "modulo goes by one column of whole numbers, not by id STRING"),
        ("SLICED BY price USING modulo", "not by price DECIMAL(9, 2)"),
        ("SLICED BY x USING modulo", "not by x DOUBLE"),
        ("SLICED BY number, x USING modulo", "one column of whole numbers"),
        ("SLICED BY x USING grid(500)", "grid goes by two columns of numbers, not by x DOUBLE"),
        ("SLICED BY x, Kind USING grid(500)", "not by x DOUBLE, Kind STRING"),
    ],
)
def test_an_assignment_that_does_not_suit_its_columns_is_refused_where_it_is_named(slicing: str, said: str) -> None:
    statement = one(f"CREATE FEED f INTO Reports\n  {slicing}")
    assert isinstance(statement, CreateFeed)
    with pytest.raises(StatementError, match=re.escape(said)) as caught:
        statement.feed(REPORTS, 16)
    assert (caught.value.line, caught.value.column) == (2, 3 + slicing.index("USING") + len("USING "))


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("10 SECONDS", 10.0),
        ("1 minute", 60.0),
        ("2 HOURS", 7200.0),
        ("250 MILLISECONDS", 0.25),
        ("0.5 SECONDS", 0.5),
        ('duration("PT1M30S")', 90.0),
        ("DURATION ( 'PT0.1S' )", 0.1),
    ],
)
def test_periods(written: str, seconds: float) -> None:
    found = channel(f"CREATE REPETITIVE CHANNEL C(event STRING) PERIOD {written} AS SELECT 1")
    assert found == Channel("C", ChannelKind.REPETITIVE, columns(event="STRING"), "SELECT 1", seconds)


def test_a_body_is_kept_as_written_with_its_own_place() -> None:
    body = "SELECT r.*, ';' AS `a;b` -- c; d\n  FROM R r /* e; */ WHERE r.\"x;\" = event AND is_new(r)"
    text = f"SHOW FEEDS;\n  CREATE CONTINUOUS CHANNEL C(event STRING) AS -- why\n  {body} -- the end\n;\nSHOW BROKERS"
    _, statement, last = parse(text)
    assert isinstance(statement, CreateChannel)
    assert statement.definition == Channel("C", ChannelKind.CONTINUOUS, columns(event="STRING"), body)
    assert (statement.line, statement.column) == (2, 3)
    assert (statement.body_line, statement.body_column) == (3, 3)
    assert statement.text.endswith(body)
    assert last == Show(line=6, column=1, text="SHOW BROKERS", what=Listing.BROKERS)


def test_columns_are_counted_in_characters() -> None:
    statement = parse("SHOW FEEDS; /* äöü 🚒 */ SHOW FEEDS")[1]
    assert (statement.line, statement.column) == (1, 25)


def test_loading_dropping_showing_and_describing() -> None:
    found = parse(
        "load dataset S from 'a;b.csv'; DROP CHANNEL IF EXISTS C;; DROP FEED f; show Channels; DESCRIBE DATASET S;"
    )
    assert found == [
        LoadDataset(line=1, column=1, text="load dataset S from 'a;b.csv'", dataset="S", path="a;b.csv"),
        Drop(line=1, column=32, text="DROP CHANNEL IF EXISTS C", what=Thing.CHANNEL, name="C", if_exists=True),
        Drop(line=1, column=59, text="DROP FEED f", what=Thing.FEED, name="f"),
        Show(line=1, column=72, text="show Channels", what=Listing.CHANNELS),
        Describe(line=1, column=87, text="DESCRIBE DATASET S", what=Thing.DATASET, name="S"),
    ]


@pytest.mark.parametrize("text", ["", " \n ", ";;", "-- nothing", "/* nothing; */;"])
def test_a_file_may_hold_no_statement(text: str) -> None:
    assert parse(text) == []


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (
            "CREATE DATASTE x (a INT)",
            (1, 8),
            "KEYED, REFERENCE, FEED, REPETITIVE or CONTINUOUS, found 'DATASTE' (did you mean DATASET?)",
        ),
        ("SHOW FEEDS;\nSELECT 1", (2, 1), "expected CREATE, LOAD, DROP, SHOW or DESCRIBE, found 'SELECT'"),
        ("SHOW FEEDS FEEDS", (1, 12), "expected ';', found 'FEEDS'"),
        ("SHOW", (1, 5), "found the end of the statement"),
        ("CREATE CHANNEL c() AS SELECT 1", (1, 8), "REPETITIVE CHANNEL or CONTINUOUS CHANNEL"),
        ("CREATE DATASET x", (1, 17), "expected '(', found the end of the statement"),
        ("CREATE DATASET x ()", (1, 18), "has no columns"),
        ("CREATE DATASET x (a INT,)", (1, 25), ") is not a name"),
        ("CREATE DATASET x (a INT, A STRING)", (1, 26), "column 'A' occurs twice"),
        ("CREATE DATASET x (a INT NOT NULL)", (1, 25), "expected ',' or ')', found 'NOT'"),
        ("CREATE DATASET x (a)", (1, 20), "unknown type ')'"),
        ("CREATE DATASET x (\n  a INTT)", (2, 5), "unknown type 'INTT' (did you mean INT?)"),
        ("CREATE DATASET x (a ARRAY<INT)", (1, 31), "expected '>'"),
        ("CREATE DATASET x (a INT) PRIMARY KEY b", (1, 38), "PRIMARY KEY 'b' is not a column of x"),
        ("CREATE DATASET x (a ARRAY<INT>) PRIMARY KEY a", (1, 45), "a key is a single value"),
        (
            "CREATE DATASET x (a INT) PRIMRY KEY a",
            (1, 26),
            "expected PRIMARY KEY, found 'PRIMRY' (did you mean PRIMARY?)",
        ),
        ("CREATE KEYED DATASET x (a INT)", (1, 31), "expected PRIMARY KEY"),
        ("CREATE DATASET `x` (a INT)", (1, 16), "backquoted names are not supported"),
        ("CREATE DATASET 'x' (a INT)", (1, 16), "'x' is not a name"),
        ("CREATE DATASET _x (a INT)", (1, 16), "_x is reserved"),
        ("CREATE DATASET x (_a INT)", (1, 19), "_a is reserved"),
        ("CREATE DATASET ä (a INT)", (1, 16), "ä is not a name"),
        (f"CREATE DATASET {'x' * 129} (a INT)", (1, 16), "is too long"),
        ("CREATE OR REPLACE DATASET IF NOT EXISTS x (a INT)", (1, 27), "contradict each other"),
        ("CREATE FEED f INTO d INTO 0 SLICES", (1, 27), "a number of slices from 1 to 1024, found 0"),
        ("CREATE FEED f INTO d INTO -1 SLICES", (1, 27), "a number of slices from 1 to 1024, found '-'"),
        ("CREATE FEED f INTO d INTO 2000 SLICES", (1, 27), "a number of slices from 1 to 1024, found 2000"),
        (
            "CREATE FEED f INTO d SLICE BY id",
            (1, 22),
            "expected SLICED BY or INTO or FROM KAFKA or PROCESSED BY or WITH or FOR, found 'SLICE' "
            "(did you mean SLICED?)",
        ),
        (
            "CREATE FEED f INTO d SLICED BY i SLICED",
            (1, 34),
            "expected USING or INTO or FROM KAFKA or PROCESSED BY or WITH or FOR, found 'SLICED'",
        ),
        ("CREATE FEED f INTO d FROM 'topic'", (1, 27), "expected KAFKA"),
        ("CREATE FEED f INTO d FROM KAFKA topic", (1, 33), "expected a topic in quotes"),
        ("CREATE FEED f INTO d FROM KAFKA 'a b'", (1, 33), "a topic's name has 1 to 249 letters"),
        ("CREATE FEED f INTO d FROM KAFKA 't' FOR SUBSCRIBERS", (1, 52), "is for Kafka to say: leave out WITH and FOR"),
        ("CREATE FEED f INTO d FOR SUBSCRIBERS INTO 3 SLICES", (1, 38), "expected ';', found 'INTO'"),
        ("CREATE FEED f INTO d WITH u FROM PUBLISHER", (1, 34), "expected SUBSCRIBER, found 'PUBLISHER'"),
        ("CREATE FEED f INTO d FOR GROUPS ()", (1, 34), "expected the name of a group in quotes"),
        ("CREATE FEED f INTO d FOR GROUPS ('a b')", (1, 34), "is not the name of a group"),
        ("CREATE FEED f INTO d FOR ANYBODY", (1, 26), "expected PUBLISHERS, SUBSCRIBERS or GROUPS"),
        ("CREATE CONTINUOUS CHANNEL c(a INT FROM SUBSCRIBER) AS SELECT 1", (1, 35), "a subscriber's name is a STRING"),
        ("CREATE CONTINUOUS CHANNEL c(a STRING FROM x) AS SELECT 1", (1, 43), "expected SUBSCRIBER, found 'x'"),
        ("CREATE CONTINUOUS CHANNEL c() FOR PUBLISHERS AS SELECT 1", (1, 35), "expected SUBSCRIBERS or GROUPS"),
        ("CREATE CONTINUOUS CHANNEL c(a INT, a INT) AS SELECT 1", (1, 36), "parameter 'a' occurs twice"),
        ("CREATE CONTINUOUS CHANNEL c(a ARRAY<INT>) AS SELECT 1", (1, 28), "a parameter is a single value"),
        ("CREATE FEED f INTO d SLICED", (1, 28), "expected BY or USING, found the end"),
        ("CREATE FEED f INTO d SLICED BY a, A", (1, 35), "column 'A' occurs twice"),
        ("CREATE FEED f INTO d SLICED BY a,", (1, 34), "expected the name of a column"),
        ("CREATE FEED f INTO d SLICED BY a USING modula", (1, 40), "(did you mean MODULO?)"),
        ("CREATE FEED f INTO d SLICED BY a USING grid", (1, 44), "expected '('"),
        ("CREATE FEED f INTO d SLICED BY a USING grid()", (1, 45), "as in grid(500)"),
        ("CREATE FEED f INTO d SLICED BY a USING grid(-1)", (1, 45), "as in grid(500)"),
        ("CREATE FEED f INTO d SLICED BY a USING grid(0.0)", (1, 45), "longer than 0"),
        ("CREATE FEED f INTO d SLICED BY a USING 'os.system'", (1, 40), "'package.module:function'"),
        ("CREATE FEED f INTO d SLICED BY a USING 'a:b.c'", (1, 40), "'package.module:function'"),
        ("CREATE FEED f INTO d SLICED BY a USING 'grid:f'", (1, 40), "cannot be told from the assignment"),
        ("CREATE FEED f INTO d SLICED USING random FROM KAFKA 't'", (1, 56), "leave out USING"),
        ("CREATE FEED f INTO d PROCESSED BY f", (1, 35), "expected a function in quotes"),
        ("CREATE FEED f INTO d PROCESSED BY 'a b:c'", (1, 35), "'package.module:function'"),
        ("CREATE FEED f INTO d PROCESSED BY 'a:b' FROM KAFKA 't'", (1, 41), "expected WITH or FOR"),
        ("CREATE CONTINUOUS CHANNEL c AS SELECT 1", (1, 29), "expected '(', found 'AS'"),
        ("CREATE CONTINUOUS CHANNEL c() AS ;", (1, 33), "expected a query"),
        ("CREATE CONTINUOUS CHANNEL c() PERIOD 1 SECOND AS SELECT 1", (1, 31), "has no PERIOD"),
        ("CREATE REPETITIVE CHANNEL c() AS SELECT 1", (1, 31), "expected PERIOD, found 'AS'"),
        ("CREATE REPETITIVE CHANNEL c() PERIOD 0 SECONDS AS SELECT 1", (1, 38), "not 0 seconds"),
        ("CREATE REPETITIVE CHANNEL c() PERIOD -1 SECONDS AS SELECT 1", (1, 38), "expected a positive number"),
        ("CREATE REPETITIVE CHANNEL c() PERIOD 10S AS SELECT 1", (1, 38), "expected a positive number, found '10S'"),
        ("CREATE REPETITIVE CHANNEL c() PERIOD 0.5 MILLISECONDS AS SELECT 1", (1, 38), "not 0.0005 seconds"),
        ("CREATE REPETITIVE CHANNEL c() PERIOD 9000 HOURS AS SELECT 1", (1, 38), "not 32400000 seconds"),
        ("CREATE REPETITIVE CHANNEL c() PERIOD 1 SECODN AS SELECT 1", (1, 40), "(did you mean SECONDS?)"),
        ('CREATE REPETITIVE CHANNEL c() PERIOD duration("10") AS SELECT 1', (1, 47), 'such as "PT10S"'),
        ('CREATE REPETITIVE CHANNEL c() PERIOD duration("-PT1S") AS SELECT 1', (1, 38), "not -1 seconds"),
        ("LOAD DATASET d FROM file", (1, 21), "expected a path in quotes, found 'file'"),
        ("LOAD DATASET d FROM ''", (1, 21), "expected a path in quotes, found ''"),
        ("DROP SUBSCRIPTION x", (1, 6), "expected DATASET, FEED or CHANNEL"),
        ("SHOW FEEDS;\n LOAD DATASET d FROM 'x;", (2, 22), "the string that begins here is never closed"),
        ("SHOW FEEDS; /* and so on;", (1, 13), "the comment that begins here is never closed"),
        ("DROP FEED `x", (1, 11), "the quoted name that begins here is never closed"),
    ],
)
def test_what_is_wrong_is_refused_at_its_line_and_column(text: str, place: tuple[int, int], said: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse(text)
    assert said in caught.value.reason
    assert (caught.value.line, caught.value.column) == place


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}", fullmatch=True)
SCALARS = st.sampled_from(["STRING", "BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(9, 3)", "DATE", "TIMESTAMP"]).map(
    parse_type
)
TYPES = (
    SCALARS | SCALARS.map(lambda inner: ColumnType(Kind.ARRAY, element=inner)) | st.just(parse_type("STRUCT<a: INT>"))
)
COLUMNS = st.lists(st.builds(Column, NAMES, TYPES), max_size=4, unique_by=lambda column: column.name.lower())
PARAMETERS = st.lists(st.builds(Column, NAMES, SCALARS), max_size=3, unique_by=lambda column: column.name.lower())
BODIES = st.sampled_from(["SELECT 1", "WITH q AS (SELECT ';')\nSELECT * -- it's\nFROM q", 'SELECT r\'\\\' , "a\\";"'])
PERIODS = st.integers(1, 1000 * 3600 * 24 * 366).map(lambda milliseconds: milliseconds / 1000)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    key = draw(st.builds(Column, NAMES, SCALARS))
    others = [column for column in draw(COLUMNS) if column.name.lower() != key.name.lower()]
    kind = draw(st.sampled_from(DatasetKind))
    keyed = kind is DatasetKind.KEYED or draw(st.booleans())
    return Dataset(draw(NAMES), kind, tuple(draw(st.permutations([key, *others]))), key.name if keyed else None)


CHANNELS = st.builds(
    Channel, NAMES, st.just(ChannelKind.REPETITIVE), PARAMETERS.map(tuple), BODIES, PERIODS
) | st.builds(Channel, NAMES, st.just(ChannelKind.CONTINUOUS), PARAMETERS.map(tuple), BODIES)
GROUPS = st.none() | st.sets(st.sampled_from(["police", "fire", "a.b:c@d-e"])).map(lambda names: tuple(sorted(names)))


@st.composite
def channels(draw: st.DrawFn) -> Channel:
    channel = draw(CHANNELS)
    texts = [column.name for column in channel.parameters if column.type.kind is Kind.STRING]
    bound = tuple(name for name in texts if draw(st.booleans()))
    return msgspec.structs.replace(channel, terms=Terms(bound, draw(GROUPS.filter(lambda groups: groups != ()))))


USING = st.sampled_from(["hash", "modulo", "random", "grid:2.5", "a.b:c"])


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    sliced_by, *bound = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower))
    terms = Terms(tuple(sorted(name for name in bound if name.lower() != f"{sliced_by}2".lower())), draw(GROUPS))
    topic = "" if terms.bound or terms.groups != () else draw(st.sampled_from(["", "orders", "a-b.c"]))
    using, processed_by = "hash" if topic else draw(USING), draw(st.sampled_from(["", "a.b:c"]))
    columns = {"random": "", "grid:2.5": f"{sliced_by}, {sliced_by}2"}.get(using, sliced_by)
    slices = draw(st.integers(1, 1024))
    return Feed(draw(NAMES), draw(NAMES), columns, slices, terms, topic, using, processed_by)


def defined(statement: Statement) -> Definition:
    if isinstance(statement, CreateFeed):
        types = {**dict.fromkeys(statement.sliced_by, "INT"), **dict.fromkeys(statement.terms.bound, "STRING")}
        dataset = Dataset(statement.dataset, DatasetKind.APPEND, columns(**types))
        return statement.feed(dataset, 16)
    assert isinstance(statement, CreateDataset | CreateChannel)
    return statement.definition


@given(st.lists(datasets() | channels() | feeds(), max_size=3))
def test_definitions_written_as_statements_are_read_back_the_same(definitions: list[Definition]) -> None:
    assert [defined(statement) for statement in parse("\n".join(map(render, definitions)))] == definitions


VOCABULARY = (
    "CREATE OR REPLACE KEYED DATASET FEED CHANNEL CONTINUOUS REPETITIVE PERIOD 1 SECONDS INTO SLICED BY PRIMARY KEY IF "
    "NOT EXISTS FOR GROUPS SUBSCRIBERS SUBSCRIBER WITH USING GRID MODULO PROCESSED "
    "LOAD FROM DROP SHOW x INT ( ) , < > ; AS SELECT 'a' ' \" ` /* */ -- \n DECIMAL( 1.5 - \\ 0x1 $$ {{ @"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))


@given(st.text() | st.lists(WORDS, max_size=20).map(" ".join))
def test_no_text_raises_anything_but_a_statement_error(text: str) -> None:
    with suppress(StatementError):
        parse(text)


@given(st.integers(0, 400), st.text(max_size=3))
def test_a_damaged_file_raises_nothing_but_a_statement_error(position: int, damage: str) -> None:
    text = (
        "CREATE KEYED DATASET D (id STRING, x MAP<STRING, ARRAY<DECIMAL(3, 1)>>) PRIMARY KEY id; -- a\n"
        "CREATE FEED f INTO D SLICED BY id INTO 3 SLICES;\n"
        "CREATE OR REPLACE REPETITIVE CHANNEL C(a INT, b DATE) PERIOD 3 MINUTES AS SELECT ';' FROM D /* b */;\n"
        "CREATE CONTINUOUS CHANNEL E() AS SELECT 1; LOAD DATASET D FROM 'a.csv'; DROP FEED IF EXISTS f; SHOW FEEDS;"
    )
    with suppress(StatementError):
        parse(text[:position] + damage + text[position + 1 :])
