"""What a channel must be, checked when it is created: what is refused, where, and in which words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from tests.data.compiler.conftest import Channels
from tocsin.data.compiler.check import check
from tocsin.data.language.parser import CreateChannel, CreateDataset, parse
from tocsin.errors import StatementError
from tocsin.schema.definitions import Channel, ChannelKind, Dataset

pytestmark = pytest.mark.spark

# Parameters, body (in which ^ marks the place of the error) and the beginning of the reason.
REFUSALS = {
    "no query": ("", "", "the channel has no query after AS"),
    "not a query": ("", "^DELETE FROM Reports", "a channel is a query that begins with SELECT or WITH, not DELETE"),
    "a misspelled query": ("", "^SELEC r.id FROM Reports r", "a channel is a query that begins with SELECT or WITH"),
    "an insertion behind WITH": (
        "",
        "WITH a AS (SELECT 1) ^INSERT INTO Reports SELECT * FROM a",
        "a channel reads its datasets and changes nothing",
    ),
    "bad syntax": (
        "event STRING",
        "SELECT r.id\nFROM Reports r\nWHERE r.etype = event ^ORDERBY id",
        "syntax error at 'ORDERBY'",
    ),
    "unclosed text": ("", "^SELECT 'abc FROM Reports", "the query cannot be read as SQL"),
    "two statements": ("", "SELECT 1 AS a; ^SELECT 2 AS a", "syntax error at 'SELECT'"),
    "unknown dataset": (
        "event STRING",
        "SELECT r.id\nFROM ^Nothing r WHERE r.etype = event",
        "there is no dataset Nothing; there are Quotes, Reports, Shelters, Users",
    ),
    "misspelled dataset": ("", "SELECT r.id FROM ^Report r", "there is no dataset Report (did you mean Reports?)"),
    "a file": ("", "SELECT * FROM ^csv.`/etc/passwd`", "there is no dataset csv./etc/passwd"),
    "a dataset that is not read in FROM": (
        "",
        "SELECT id FROM Reports UNION ALL TABLE ^Shelters",
        "Shelters must be read",
    ),
    "a name that hides a dataset": (
        "",
        "WITH ^Reports AS (SELECT 1 AS id) SELECT r.id FROM Reports r WHERE is_new(r)",
        "Reports is a dataset; call this query something else",
    ),
    "unknown column": (
        "event STRING",
        "SELECT r.id, ^r.etyp FROM Reports r WHERE r.etype = event AND is_new(r)",
        "there is no column r.etyp (did you mean r.etype?)",
    ),
    "unknown column behind a parameter": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r)\n  AND ^gravity > 3",
        "there is no column gravity",
    ),
    "misspelled parameter": (
        "event STRING",
        "SELECT r.id, event AS e FROM Reports r WHERE r.etype = ^evnt",
        "there is no",
    ),
    "a parameter that is used by a misspelled name alone": (
        "event STRING, above INT",
        "SELECT r.id FROM Reports r WHERE r.etype = event AND r.severity > ^abov",
        "parameter above is never used; is it meant by abov?",
    ),
    "a parameter that is never used, beside other names": (
        "event STRING",
        "^SELECT r.id, severity FROM Reports r WHERE is_new(r)",
        "parameter event is never used: subscriptions would differ in it and find the same; leave it out",
    ),
    "unknown function": ("", "SELECT ^nearby(r.x) AS n FROM Reports r", "there is no function nearby"),
    "a number compared with text": (
        "n INT",
        "SELECT r.id FROM Reports r WHERE ^r.etype = n",
        "r.etype is STRING, but is used as",
    ),
    "text compared with a number": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.severity = ^event",
        "parameter event is STRING, but is used as",
    ),
    "text compared with a time": (
        "since STRING",
        "SELECT r.id FROM Reports r WHERE r.at > ^since",
        "parameter since is STRING, but is used as TIMESTAMP",
    ),
    "text as a radius": (
        "radius STRING",
        "SELECT r.id FROM Reports r WHERE ^near(r.x, r.y, 0, 0, radius)",
        "parameter radius is STRING, but is used as DOUBLE",
    ),
    "text as a coordinate": (
        "",
        "SELECT r.id FROM Reports r WHERE ^near(r.id, r.y, 0, 0, 5)",
        "r.id is STRING, but is used as",
    ),
    "a parameter named like a column": (
        "etype STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = ^etype",
        "parameter etype is named like a column of Reports; call the parameter something else",
    ),
    "a parameter named like a column, in another case": (
        "eType STRING",
        "SELECT r.id FROM Reports r WHERE r.etype = ^ETYPE",
        "parameter eType is named like a column of Reports",
    ),
    "a parameter as an alias": (
        "event STRING",
        "SELECT r.id AS ^event FROM Reports r",
        "event is a parameter and cannot be",
    ),
    "a parameter as an alias without AS": ("event STRING", "SELECT r.id ^event FROM Reports r", "event is a parameter"),
    "a parameter as the alias of a relation": (
        "r STRING",
        "SELECT id FROM Reports ^r WHERE etype = r",
        "r is a parameter",
    ),
    "a parameter as the variable of a function": (
        "tag STRING",
        "SELECT exists(q.tags, ^tag -> tag = 'hot') AS hot FROM Quotes q",
        "tag is a parameter and cannot be the name of anything else",
    ),
    "a parameter without a use": (
        "event STRING, n INT",
        "^SELECT r.id FROM Reports r WHERE r.etype = event",
        "parameter n is",
    ),
    "two columns of a name": (
        "",
        "SELECT r.^id, s.id FROM Reports r JOIN Shelters s ON r.x = s.x",
        "two columns of the result are called id; give one of them an alias",
    ),
    "a random value": ("", "SELECT r.id, ^rand() AS n FROM Reports r", "rand is not determined by the data"),
    "a random id": ("", "SELECT r.id, ^uuid() AS n FROM Reports r", "uuid is not determined by the data"),
    "a value deep inside": (
        "",
        "SELECT r.id FROM Reports r WHERE EXISTS (SELECT 1 FROM Shelters s WHERE s.x > ^rand())",
        "rand is not determined by the data",
    ),
    "the time": ("", "SELECT r.id, ^now() AS n FROM Reports r", "now depends on when and where the channel runs"),
    "the date": ("", "SELECT r.id FROM Reports r WHERE r.at > ^current_date", "current_date depends on when"),
    "the user": ("", "SELECT r.id, ^current_user() AS me FROM Reports r", "current_user depends on"),
    "whichever comes first": (
        "",
        "SELECT ^first(r.id) AS f FROM Reports r",
        "first takes whichever record comes first",
    ),
    "any value": (
        "",
        "SELECT r.etype, ^any_value(r.id) AS f FROM Reports r GROUP BY r.etype",
        "any_value takes whichever",
    ),
    "text in no order": ("", "SELECT ^listagg(r.id) AS ids FROM Reports r", "listagg takes whichever"),
    "a sample": ("", "SELECT r.id FROM Reports ^TABLESAMPLE (10 PERCENT) AS r", "a sample is random"),
    "limit without order": ("", "SELECT r.id FROM Reports r ^LIMIT 3", "LIMIT and OFFSET need an ORDER BY"),
    "offset without order": ("", "SELECT r.id FROM Reports r ^OFFSET 3", "LIMIT and OFFSET need an ORDER BY"),
    "a program": (
        "",
        "^SELECT TRANSFORM (r.id) USING 'cat' AS (id STRING) FROM Reports r",
        "a body cannot run programs",
    ),
    "a method of Java's": (
        "",
        "SELECT ^reflect('java.lang.System', 'nanoTime') AS t FROM Reports",
        "there is no function reflect for channels",
    ),
    "a hint": ("", "SELECT ^/*+ BROADCAST(r) */ r.id FROM Reports r", "a body takes no hints"),
    "a reserved name": (
        "",
        "SELECT r.id AS ^__be FROM Reports r",
        "__be: names that begin with two underscores are reserved",
    ),
    "new in a reference dataset": (
        "",
        "SELECT s.id FROM Shelters s WHERE ^is_new(s)",
        "is_new(s): Shelters is a reference dataset, which is loaded and has no new records",
    ),
    "new in an unknown dataset": ("", "SELECT r.id FROM ^Nothing r WHERE is_new(r)", "there is no dataset Nothing"),
    "new in nothing": (
        "",
        "SELECT r.id FROM Reports r WHERE ^is_new(q)",
        "is_new(q): this SELECT reads nothing called q",
    ),
    "new in the SELECT around": (
        "",
        "SELECT r.id FROM Reports r WHERE EXISTS (SELECT 1 FROM Shelters s WHERE ^is_new(r))",
        "is_new(r): this SELECT reads nothing called r",
    ),
    "new in a subquery": (
        "",
        "SELECT t.id FROM (SELECT id FROM Reports) t WHERE ^is_new(t)",
        "is_new(t): t is not a dataset",
    ),
    "new below or": (
        "",
        "SELECT r.id FROM Reports r WHERE r.severity > 3 OR ^is_new(r)",
        "is_new(r) must be a condition",
    ),
    "not new": ("", "SELECT r.id FROM Reports r WHERE NOT ^is_new(r)", "is_new(r) must be a condition of its own"),
    "new in the select list": (
        "",
        "SELECT r.id, ^is_new(r) AS n FROM Reports r",
        "is_new(r) must be a condition of its own",
    ),
    "new on the optional side": (
        "",
        "SELECT s.id FROM Shelters s LEFT JOIN Reports r ON r.x = s.x WHERE ^is_new(r)",
        "is_new(r) must be a condition of its own",
    ),
    "new in a right join": (
        "",
        "SELECT s.id FROM Reports r RIGHT JOIN Shelters s ON r.x = s.x AND ^is_new(r)",
        "is_new(r) must be a condition of its own",
    ),
    "new of two": ("", "SELECT r.id FROM Reports r WHERE ^is_new(r, 3)", "is_new takes one relation's name or alias"),
    "near with too little": ("", "SELECT r.id FROM Reports r WHERE ^near(r.x, r.y, 3, 4)", "near takes five values"),
    "an order in parentheses": (
        "",
        "^(SELECT id FROM Reports UNION SELECT id FROM Shelters ORDER BY id)",
        "write the last ORDER",
    ),
    "an ambiguous order": (
        "",
        "SELECT r.x AS severity FROM Reports r ORDER BY abs(^severity)",
        "severity could be a column of the result or of FROM here",
    ),
    "an order of a union by what is no column": (
        "",
        "SELECT id FROM Reports UNION SELECT id FROM Shelters ORDER BY ^length(id)",
        "the result of a UNION or the like is ordered by names of its columns",
    ),
    "a regular expression that a subscriber chooses": (
        "pattern STRING",
        "SELECT r.id FROM Reports r\nWHERE is_new(r) AND r.message ^RLIKE pattern",
        "a regular expression must be a constant",
    ),
    "a regular expression that is made of a parameter, in a subquery": (
        "word STRING",
        "SELECT r.id FROM Reports r WHERE EXISTS (SELECT 1 FROM Users u WHERE u.userId = r.id "
        "AND ^regexp_count(u.city, concat('x', word)) > 1)",
        "a regular expression must be a constant",
    ),
    "a regular expression that a publisher chooses": (
        "event STRING",
        "SELECT r.id, ^split(r.message, r.etype) AS parts FROM Reports r WHERE r.etype = event AND is_new(r)",
        "a regular expression must be a constant",
    ),
    "what parts a map's text, chosen by a publisher": (
        "event STRING",
        "SELECT r.id, ^str_to_map(r.message, ',', r.id) AS m FROM Reports r WHERE r.etype = event AND is_new(r)",
        "a regular expression must be a constant",
    ),
}
# Written by the author, whatever the text it is matched with.
CONSTANT_PATTERNS = [
    "r.message RLIKE '^a.*' AND r.etype = event",
    "r.etype LIKE concat(event, '%')",
    "regexp_replace(r.message, concat('a', '+'), 'b') = event",
    "split(r.message, ' ')[0] = event",
]


@pytest.mark.parametrize("condition", CONSTANT_PATTERNS)
def test_a_regular_expression_that_is_constant_is_taken(
    condition: str, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    body = f"SELECT r.id FROM Reports r WHERE is_new(r) AND {condition}"
    assert check(session, channel("event STRING", body), datasets).columns == (("id", "string"),)


@pytest.mark.parametrize("what", REFUSALS)
def test_it_is_refused_at_its_place_with_the_reason(
    what: str, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    parameters, marked, reason = REFUSALS[what]
    before = marked.partition("^")[0] if "^" in marked else ""
    definition = _channel(channel, parameters, marked.replace("^", ""))
    with pytest.raises(StatementError) as refused:
        check(session, definition, datasets)
    error = refused.value
    assert error.reason.startswith(reason)
    assert (error.line, error.column) == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    assert "SQLSTATE" not in error.reason
    assert "__" not in error.reason.replace("__be: names", "")


def _channel(channel: Channels, parameters: str, body: str) -> Channel:
    """An application file could not hold some of these bodies; a request to the server could."""
    made = channel(parameters, "SELECT 1 AS one")
    return Channel("Refused", ChannelKind.CONTINUOUS, made.parameters, body)


@pytest.mark.parametrize(
    ("body", "quiet"),
    [
        ("SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r)", True),
        ("SELECT r.id, s.id AS sid FROM Reports r LEFT JOIN Shelters s ON s.name = event WHERE is_new(r)", True),
        (
            "SELECT u.userId, r.id FROM Users u LEFT JOIN Reports r ON r.x = u.x AND is_new(r) WHERE u.city = event",
            False,
        ),
        ("SELECT count(*) AS n FROM Reports r WHERE r.etype = event AND is_new(r)", False),
        ("SELECT r.id FROM Reports r WHERE r.etype = event", False),
        (
            "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) "
            "UNION ALL SELECT s.id FROM Shelters s WHERE s.name = event",
            False,
        ),
        (
            "SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r) "
            "UNION ALL SELECT u.userId FROM Users u WHERE u.city = event AND is_new(u)",
            True,
        ),
        (
            "SELECT s.id FROM Shelters s WHERE s.name = event AND NOT EXISTS (SELECT 1 FROM Reports r WHERE is_new(r))",
            False,
        ),
    ],
)
def test_a_channel_is_quiet_when_nothing_new_means_no_result(
    body: str, quiet: bool, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    assert check(session, channel("event STRING", body), datasets).quiet is quiet


def test_it_says_what_it_reads_and_what_a_row_holds(
    session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    body = """SELECT r.id, count(*) AS n, collect_list(s.name) AS names
              FROM reports r JOIN Reports o ON o.x = r.x LEFT JOIN Shelters s ON s.x = r.x
              WHERE is_new(r) AND o.etype = event GROUP BY r.id"""
    compiled = check(session, channel("event STRING", body), datasets)
    assert compiled.whole == frozenset({"Reports", "Shelters"})
    assert compiled.fresh == frozenset({"Reports"})
    assert compiled.columns == (("id", "string"), ("n", "bigint"), ("names", "array<string>"))


def test_arrays_and_windows_in_an_order_are_determined(
    session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    body = """SELECT r.etype, sort_array(collect_list(r.id)) AS ids, listagg(r.id) WITHIN GROUP (ORDER BY r.id) AS text,
                     max_by(r.id, r.severity) AS worst
              FROM (SELECT *, first_value(id) OVER (PARTITION BY etype ORDER BY at, id) AS f FROM Reports) r
              WHERE r.f <> event GROUP BY r.etype"""
    assert check(session, channel("event STRING", body), datasets).fresh == frozenset()


def test_every_channel_of_the_emergency_application_is_accepted(session: SparkSession) -> None:
    from tocsin.apps.emergency import APPLICATION

    statements = parse(APPLICATION.read_text())
    datasets = {s.definition.name: s.definition for s in statements if isinstance(s, CreateDataset)}
    channels = [s.definition for s in statements if isinstance(s, CreateChannel)]
    compiled = [check(session, definition, datasets) for definition in channels]
    assert [c.quiet for c in compiled] == [True] * 7
