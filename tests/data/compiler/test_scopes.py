"""The structure of a body: its SELECTs, what they read and their conditions, whatever else stands in the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.compiler.order import keys
from tocsin.data.compiler.patch import Patch
from tocsin.data.compiler.scopes import Body, Span
from tocsin.errors import StatementError


def conditions(text: str) -> list[str]:
    body = Body(f"SELECT a FROM t WHERE {text}")
    return [body.slice(conjunct) for conjunct, _ in body.conditions(body.scopes[0])]


def items(clause: str) -> list[tuple[str, str | None, str | None, str]]:
    body = Body(f"SELECT 1 FROM {clause}")
    return [(item.join, item.name, item.alias, body.slice(item.on)) for item in body.scopes[0].items]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1 AND b = 2 and c", ["a = 1", "b = 2", "c"]),
        ("a = 1 OR b = 2 AND c", ["a = 1 OR b = 2 AND c"]),
        ("a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4", ["a BETWEEN 1 AND 2", "b NOT BETWEEN 3 AND 4"]),
        ("(a AND (b AND c)) AND (d OR e)", ["a", "b", "c", "d OR e"]),
        ("CASE WHEN a AND b THEN c OR d END AND e", ["CASE WHEN a AND b THEN c OR d END", "e"]),
        ("f(a AND b) AND m[x AND y]", ["f(a AND b)", "m[x AND y]"]),
        ("a = ' AND ' AND `b AND c` /* AND */ = \"OR\" -- AND d", ["a = ' AND '", '`b AND c` /* AND */ = "OR"']),
        (
            "EXISTS (SELECT 1 FROM u WHERE c AND d) AND (SELECT e AND f) AND r.or",
            ["EXISTS (SELECT 1 FROM u WHERE c AND d)", "(SELECT e AND f)", "r.or"],
        ),
        ("a IS DISTINCT FROM b AND c", ["a IS DISTINCT FROM b", "c"]),
    ],
)
def test_a_condition_is_cut_at_its_ands(text: str, parts: list[str]) -> None:
    assert conditions(text) == parts


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("t", [("", "t", "t", "")]),
        ("t AS a, u b", [("", "t", "a", ""), (",", "u", "b", "")]),
        ("t a JOIN u b ON a.x = b.x AND a.y", [("", "t", "a", ""), ("INNER", "u", "b", "a.x = b.x AND a.y")]),
        ("t LEFT OUTER JOIN `u` AS `b` ON f(1, 2)", [("", "t", "t", ""), ("LEFT OUTER", "u", "b", "f(1, 2)")]),
        ("t NATURAL JOIN u CROSS JOIN v", [("", "t", "t", ""), ("NATURAL", "u", "u", ""), ("CROSS", "v", "v", "")]),
        ("t JOIN u USING (x, y)", [("", "t", "t", ""), ("INNER USING", "u", "u", "")]),
        ("(SELECT 1, 2) q, t", [("", None, "q", ""), (",", "t", "t", "")]),
        ("t, LATERAL (SELECT t.x) q", [("", "t", "t", ""), (", LATERAL", None, None, "")]),
        ("VALUES (1), (2) AS v(a), t", [("", None, None, ""), (",", "t", "t", "")]),
        ("range(1, 3) r, c.d e", [("", None, None, ""), (",", None, None, "")]),
        ("t LATERAL VIEW explode(t.a, b) e AS x", [("", "t", "t", "")]),
    ],
)
def test_the_relations_of_a_from_clause(clause: str, found: list[tuple[str, str | None, str | None, str]]) -> None:
    assert items(clause) == found


def test_selects_know_what_they_are_inside_of() -> None:
    body = Body(
        "WITH c AS (SELECT 1 AS a FROM t1) SELECT (SELECT 2 FROM t2) FROM c, (SELECT 3 FROM t3) d "
        "WHERE x IN (SELECT 4 FROM t4 WHERE EXISTS (SELECT 5 FROM t5)) UNION ALL (SELECT 6 FROM t6)"
    )
    found = {scope.items[0].name: (scope.depth, scope.parent and scope.parent.number) for scope in body.scopes}
    assert found == {
        "t1": (0, None),
        "c": (0, None),
        "t2": (1, 1),
        "t3": (0, 1),
        "t4": (1, 1),
        "t5": (2, 4),
        "t6": (0, None),
    }
    assert [body.names[token] for token in body.common] == ["c"]
    assert body.main is None


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("SELECT a, b FROM t", []),
        ("SELECT a, b FROM t ORDER BY b DESC NULLS LAST, 1 LIMIT 3", [("b", "DESC NULLS LAST"), ("a", "")]),
        ("SELECT a, b FROM t ORDER BY ALL DESC", [("a", "DESC"), ("b", "DESC")]),
        ("(SELECT a, b FROM t ORDER BY A)", [("a", "")]),
        ("SELECT a, b FROM t UNION SELECT 1, 2 ORDER BY b, 1", [("b", ""), ("a", "")]),
        ("SELECT a, b FROM (SELECT * FROM t ORDER BY a)", []),
        ("SELECT a, b FROM t ORDER BY t.c + 1 ASC, max(a.b)", [(None, "ASC"), (None, "")]),
        ("SELECT a, rank() OVER (ORDER BY c) AS b FROM t", []),
    ],
)
def test_the_order_of_a_result(text: str, ordered: list[tuple[str | None, str]]) -> None:
    assert [(key.column, key.direction) for key in keys(Body(text), ["a", "b"])] == ordered


def test_a_clause_torn_apart_by_a_comment_is_refused_rather_than_missed() -> None:
    with pytest.raises(StatementError, match=r"line 1, column 17: write ORDER BY"):
        Body("SELECT a FROM t ORDER /* by what? */ BY a")


WORDS = st.sampled_from(
    ["SELECT", "a", "(", ")", "FROM", "CASE", "END", "'x'", ",", "WITH", "AS", "UNION", "[", "1L", "JOIN"]
)


@given(st.lists(WORDS, max_size=30))
def test_no_text_is_too_strange(words: list[str]) -> None:
    text = " ".join(words)
    body = Body(text)
    assert all(0 <= scope.whole.first <= scope.whole.last <= len(body.words) for scope in body.scopes)
    assert body.slice(body.whole) == text


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=4), st.integers(0, 40))
def test_a_patched_text_knows_where_its_characters_were(edits: list[tuple[int, int]], offset: int) -> None:
    body = Body("SELECT a0 , b1 , c2 FROM t3 WHERE d4")
    patch = Patch(body)
    for first, length in edits:
        patch.replace(Span(first, min(first + length, len(body.words))), "##")
    rendered = patch.render_places(body.whole)
    at = min(offset, len(rendered.text) - 1)
    assert rendered.text[at] == "#" or rendered.text[at] == body.text[rendered.origin(at)]
