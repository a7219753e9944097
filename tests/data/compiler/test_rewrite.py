"""The rewritten text of bodies: what is replaced, and that nothing else is."""

from __future__ import annotations

import re

import pytest

from tocsin.data.compiler.rewrite import Rewriter, Way
from tocsin.data.language.parser import CreateChannel, CreateDataset, parse
from tocsin.errors import StatementError

DATASETS = {
    s.definition.name: s.definition
    for s in parse("""
        CREATE DATASET Reports (id STRING, etype STRING, severity INT, x DOUBLE, y DOUBLE) PRIMARY KEY id;
        CREATE KEYED DATASET Users (userId STRING, x DOUBLE, y DOUBLE, reach DOUBLE) PRIMARY KEY userId;
        CREATE REFERENCE DATASET Shelters (id STRING, name STRING, x DOUBLE, y DOUBLE);
    """)
    if isinstance(s, CreateDataset)
}
ROW = "(SELECT * FROM __subs WHERE __be = __s.__be)"


def rewriter(body: str, parameters: str = "event STRING, n INT") -> Rewriter:
    (statement,) = parse(f"CREATE CONTINUOUS CHANNEL C({parameters}) AS {body}")
    assert isinstance(statement, CreateChannel)
    return Rewriter(statement.definition, DATASETS)


@pytest.mark.parametrize(
    ("body", "rewritten"),
    [
        (
            "SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r)",
            "SELECT r.* FROM __new_Reports `r` WHERE r.etype = __s.__p0 AND true",
        ),
        (
            "SELECT 'event' /* event */, r.event, event(1), `Event` FROM Reports r WHERE r.etype = event",
            f"SELECT 'event' /* event */, r.event, event(1), __row0.__p0 FROM {ROW} __row0 JOIN Reports r ON true "
            "WHERE r.etype = __row0.__p0",
        ),
        (
            "SELECT *, r.*, count(*) FROM Reports r WHERE r.severity > n",
            f"SELECT * EXCEPT (__be, __p0, __p1), r.*, count(*) FROM {ROW} __row0 CROSS JOIN Reports r "
            "WHERE r.severity > __row0.__p1",
        ),
        (
            "SELECT * EXCEPT (x) FROM Reports r WHERE r.severity * n > 3",
            f"SELECT * EXCEPT (__be, __p0, __p1, x) FROM {ROW} __row0 CROSS JOIN Reports r "
            "WHERE r.severity * __row0.__p1 > 3",
        ),
        (
            "SELECT r.etype, n FROM Reports r, Shelters s LEFT JOIN Users u ON u.x = n WHERE r.id = event GROUP BY 1",
            f"SELECT r.etype, __row0.__p1 FROM {ROW} __row0 CROSS JOIN Reports r JOIN Shelters s ON true "
            "LEFT JOIN Users u ON u.x = __row0.__p1 WHERE r.id = __row0.__p0 GROUP BY 1, __row0.__p1",
        ),
        (
            "SELECT r.id FROM Reports r WHERE r.etype = event UNION ALL SELECT event",
            f"SELECT r.id FROM {ROW} __row0 JOIN Reports r ON true WHERE r.etype = __row0.__p0 "
            f"UNION ALL SELECT __row1.__p0 FROM {ROW} __row1",
        ),
        (
            "SELECT r.id FROM Reports r WHERE EXISTS (SELECT 1 FROM Shelters s WHERE s.name = event)",
            f"SELECT r.id FROM {ROW} __row0 JOIN Reports r ON true "
            "WHERE EXISTS (SELECT 1 FROM Shelters s WHERE s.name = __row0.__p0)",
        ),
        (
            "SELECT r.id FROM Reports r RIGHT JOIN Shelters s ON r.x = s.x WHERE s.name > event",
            "SELECT r.id FROM Reports r RIGHT JOIN Shelters s ON r.x = s.x WHERE s.name > __s.__p0",
        ),
    ],
)
def test_for_all(body: str, rewritten: str) -> None:
    assert rewriter(body).for_all().sql == rewritten


def test_for_one_the_values_stand_in_the_text() -> None:
    body = "SELECT event, r.*\nFROM Reports r -- event\nWHERE r.etype = event AND r.severity > n AND is_new(r)"
    found = rewriter(body).for_one(["'fire'", "3"])
    assert found.sql == (
        "SELECT 'fire', r.*\nFROM __new_Reports `r` -- event\nWHERE r.etype = 'fire' AND r.severity > 3 AND true"
    )
    assert (found.whole, found.fresh) == (frozenset(), frozenset({"Reports"}))


def test_from_outside_no_row_is_joined() -> None:
    found = rewriter("SELECT n FROM Reports r WHERE r.severity > n").for_all(Way.OUTER)
    assert found.sql == "SELECT __s.__p1 FROM Reports r WHERE r.severity > __s.__p1"


def test_the_same_dataset_can_be_read_whole_and_only_as_far_as_it_is_new() -> None:
    found = rewriter(
        "SELECT r.id FROM Reports r JOIN reports o ON o.x = r.x AND is_new(o) WHERE r.etype = event"
    ).for_all()
    assert (
        found.sql == "SELECT r.id FROM Reports r JOIN __new_Reports `o` ON o.x = r.x AND true WHERE r.etype = __s.__p0"
    )
    assert (found.whole, found.fresh) == (frozenset({"Reports"}), frozenset({"Reports"}))


@pytest.mark.parametrize(
    ("condition", "exploded"),
    [
        ("near(r.x, r.y, u.x, u.y, 500)", "r"),
        ("near(u.x, u.y, r.x, r.y, n)", "r"),
        ("near(r.x, r.y, u.x, u.y, u.reach)", "r"),
        ("near(u.x, u.y, r.x, r.y, r.severity)", "u"),
        ("near(r.x + 1, CAST(r.y AS DOUBLE), u.x, u.y, 5)", "r"),
        ("near(r.x, r.y, reach, userId, 5)", "r"),
        ("near(r.x, u.y, u.x, r.y, 5)", None),
        ("near(r.x, r.y, u.x, u.y, r.x + u.x)", None),
        ("NOT near(r.x, r.y, u.x, u.y, 5)", None),
        ("(near(r.x, r.y, u.x, u.y, 5) OR r.severity > n)", None),
    ],
)
def test_near_puts_the_smaller_relation_into_cells(condition: str, exploded: str | None) -> None:
    body = (
        f"SELECT r.* FROM Reports r JOIN Users u ON {condition} WHERE u.userId = event AND r.severity > n AND is_new(r)"
    )
    text = rewriter(body).for_all().sql
    found = re.search(r"AS __cell0 FROM \S+ `?(\w)`?\W", text)
    assert (found[1] if found else None) == exploded
    assert ("SELECT r.* EXCEPT (__cell0) FROM" in text) == (exploded == "r")
    assert "NEAR(" not in text.upper()


def test_only_a_subscriptions_own_rows_count_for_a_limit() -> None:
    limited = "SELECT * FROM Reports WHERE etype = event ORDER BY id LIMIT 2"
    both = rewriter(f"SELECT t.id FROM ({limited}) t WHERE t.severity > n")
    assert "__s.__p" not in both.for_all().sql
    with pytest.raises(StatementError, match="LIMIT cannot be used here"):
        both.for_all(Way.OUTER)
