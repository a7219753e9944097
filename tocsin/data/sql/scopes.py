"""The structure of a channel's body that a rewrite needs: its SELECTs, what they read, and their conditions.

Found on sqlglot's tokens, not on a syntax tree, because every piece must keep its exact place in the text: the body is
changed by replacing small spans of it, and all else goes to Spark as its author wrote it. Whether the body is valid is
for Spark to say; on text that is not, the structure found here is merely useless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from tocsin.errors import StatementError

_SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_AFTER_FROM = frozenset({"WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY", "LATERAL"})
_AFTER_SELECT = frozenset({"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET"}) | _SET_OPERATORS
_JOIN_WORDS = frozenset({"INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL"})


@dataclass(frozen=True)
class Span:
    """A run of tokens, ``first`` up to but not including ``last``."""

    first: int
    last: int

    def __bool__(self) -> bool:
        return self.last > self.first

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last))

    def __contains__(self, index: int) -> bool:
        return self.first <= index < self.last


@dataclass(frozen=True)
class Item:
    """One relation of a FROM clause and how it is joined to those before it.

    ``join`` is "" for the first, "," or the words before JOIN ("INNER", "LEFT OUTER", ...). ``name`` is set when the
    relation is simply named; ``alias`` is what the rest of the SELECT calls it.
    """

    join: str
    source: Span
    name: str | None
    alias: str | None
    on: Span

    @property
    def inner(self) -> bool:
        return self.join in {"", ",", "INNER", "CROSS"}


@dataclass
class Scope:
    """One SELECT. ``nested`` is true inside a scalar, EXISTS or IN subquery of ``parent``."""

    number: int
    parent: Scope | None
    nested: bool
    whole: Span
    select: Span
    clause: Span
    items: list[Item]
    where: Span
    group: Span
    children: list[Scope] = field(default_factory=list)

    def item(self, alias: str) -> Item | None:
        """The relation that this SELECT calls ``alias``."""
        folded = alias.casefold()
        return next((i for i in self.items if i.alias and i.alias.casefold() == folded), None)

    def own(self, span: Span) -> Iterator[int]:
        """The tokens of ``span`` that belong to this SELECT and to none inside it."""
        return (i for i in span if not any(i in child.whole for child in self.children))


class Body:
    """The text of a channel's query with its tokens and its SELECTs, outermost and leftmost first."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tokens = Spark.Tokenizer().tokenize(text)
        except TokenError as error:
            raise StatementError(f"the query cannot be read: {error}") from None
        self.tokens: list[Token] = list({token.start: token for token in tokens}.values())
        self.words = [token.text.upper() for token in self.tokens]
        self.closing = _closing(self.words)
        self.scopes: list[Scope] = []
        self._query(Span(0, len(self.tokens)), None, nested=False)

    def slice(self, span: Span) -> str:
        """The text of ``span``, exactly."""
        return self.text[self.tokens[span.first].start : self.tokens[span.last - 1].end + 1] if span else ""

    def is_name(self, index: int) -> bool:
        """Whether the token can be an identifier (a quoted one is; keywords are told apart by the caller)."""
        token = self.tokens[index]
        return token.token_type is not TokenType.STRING and (
            token.token_type is TokenType.IDENTIFIER or token.text[:1].isalpha() or token.text[:1] == "_"
        )

    def calls(self, name: str) -> Iterator[int]:
        """Where a function of that name is called."""
        return (
            i
            for i, word in enumerate(self.words)
            if word == name and self._word(i + 1) == "(" and self._word(i - 1) != "." and self.is_name(i)
        )

    def arguments(self, call: int) -> list[Span]:
        """The arguments of the function called at token ``call``."""
        inside = Span(call + 2, self.closing.get(call + 1, call + 2))
        return [part for part in self.split(inside, {","}) if part]

    def call(self, index: int) -> Span:
        """The whole call that begins at token ``index``."""
        return Span(index, self.closing.get(index + 1, index + 1) + 1)

    def conjuncts(self, condition: Span) -> list[Span]:
        """The parts of a condition joined by AND at its top level; the whole, if there is an OR at that level."""
        if not condition or any(self.words[i] == "OR" for i in self.level(condition)):
            return [condition] if condition else []
        between = 0
        cuts = []
        for i in self.level(condition):
            if self.words[i] == "BETWEEN":
                between += 1
            elif self.words[i] == "AND" and between:
                between -= 1
            elif self.words[i] == "AND":
                cuts.append(i)
        parts = [Span(a + 1, b) for a, b in zip([condition.first - 1, *cuts], [*cuts, condition.last], strict=True)]
        return [nested for part in parts for nested in self._unwrapped(part)]

    def split(self, span: Span, words: set[str]) -> list[Span]:
        """``span`` cut at each of ``words`` that stands at its top level."""
        cuts = [i for i in self.level(span) if self.words[i] in words]
        return [Span(a + 1, b) for a, b in zip([span.first - 1, *cuts], [*cuts, span.last], strict=True)]

    def _unwrapped(self, part: Span) -> list[Span]:
        """A conjunct in parentheses is looked into, unless it is a query."""
        if part and self.words[part.first] == "(" and self.closing.get(part.first) == part.last - 1:
            inside = Span(part.first + 1, part.last - 1)
            if inside and self.words[inside.first] not in {"SELECT", "WITH"}:
                return self.conjuncts(inside)
        return [part] if part else []

    def _word(self, index: int) -> str:
        return self.words[index] if 0 <= index < len(self.words) else ""

    def level(self, span: Span) -> Iterator[int]:
        """The tokens of ``span`` outside any parentheses and CASE … END in it."""
        i = span.first
        while i < span.last:
            yield i
            i = self.closing[i] if i in self.closing else i + 1

    def _query(self, span: Span, parent: Scope | None, *, nested: bool) -> None:
        """Finds the SELECTs of a query: of its WITH clause, of its branches, and those inside them."""
        start = self._with(span, parent, nested=nested) if self._word(span.first) == "WITH" else span.first
        for branch in self.split(Span(start, span.last), set(_SET_OPERATORS)):
            self._branch(branch, parent, nested=nested)

    def _branch(self, branch: Span, parent: Scope | None, *, nested: bool) -> None:
        first = branch.first
        while first < branch.last and self.words[first] in {"ALL", "DISTINCT"}:
            first += 1
        if self._word(first) == "(":
            self._query(Span(first + 1, self.closing.get(first, branch.last)), parent, nested=nested)
        elif self._word(first) == "SELECT":
            self._select(Span(first, branch.last), parent, nested=nested)

    def _with(self, span: Span, parent: Scope | None, *, nested: bool) -> int:
        """Reads the common table expressions; where the main query begins."""
        for i in self.level(span):
            if self.words[i] in {"SELECT", "FROM", "VALUES"} and self.words[i - 1] == ")":
                return i
            if self.words[i] == "(" and self.words[i - 1] == "AS":
                self._query(Span(i + 1, self.closing[i]), parent, nested=nested)
        return span.last

    def _select(self, span: Span, parent: Scope | None, *, nested: bool) -> None:
        clauses = self._clauses(span)
        scope = Scope(
            number=len(self.scopes),
            parent=parent,
            nested=nested,
            whole=span,
            select=clauses["SELECT"],
            clause=clauses.get("FROM", Span(0, 0)),
            items=self._items(clauses.get("FROM", Span(0, 0))),
            where=clauses.get("WHERE", Span(0, 0)),
            group=clauses.get("GROUP BY", Span(0, 0)),
        )
        self.scopes.append(scope)
        if parent is not None:
            parent.children.append(scope)
        self._inside(scope)

    def _clauses(self, span: Span) -> dict[str, Span]:
        """The clauses of a SELECT by their first word, without that word."""
        starts: list[tuple[str, int]] = []
        for i in self.level(span):
            word = self.words[i]
            distinct_from = word == "FROM" and self._word(i - 1) == "DISTINCT" and self._word(i - 2) in {"IS", "NOT"}
            if word in {"SELECT", "FROM"} | _AFTER_FROM | _AFTER_SELECT and not distinct_from:
                starts.append((word, i))
        ends = [i for _, i in starts[1:]] + [span.last]
        spans: dict[str, Span] = {}
        for (word, first), last in zip(starts, ends, strict=True):
            spans.setdefault(word, Span(first + 1, last))
        return spans

    def _items(self, clause: Span) -> list[Item]:
        if not clause:
            return []
        marks = [clause.first - 1]
        joins = [""]
        for i in self.level(clause):
            if self.words[i] == ",":
                marks.append(i)
                joins.append(",")
            elif self.words[i] == "JOIN":
                marks.append(i)
                joins.append(" ".join(reversed(list(self._join_words(i)))) or "INNER")
        starts = [m + 1 for m in marks]
        ends = [m - (len(j.split()) if self._join_before(m) else 0) for m, j in zip(marks[1:], joins[1:], strict=True)]
        return [
            self._item(join, Span(a, b)) for join, a, b in zip(joins, starts, [*ends, clause.last], strict=True)
        ]

    def _join_before(self, mark: int) -> bool:
        return self.words[mark] == "JOIN" and self._word(mark - 1) in _JOIN_WORDS

    def _join_words(self, mark: int) -> Iterator[str]:
        i = mark - 1
        while self._word(i) in _JOIN_WORDS:
            yield self.words[i]
            i -= 1

    def _item(self, join: str, span: Span) -> Item:
        on = next((i for i in self.level(span) if self.words[i] == "ON"), span.last)
        using = any(self.words[i] == "USING" for i in self.level(span))
        source = Span(span.first, on)
        if using or "LATERAL" in self.words[source.first : source.last]:
            return Item(f"{join} USING", source, None, None, Span(0, 0))
        name, alias = self._named(source)
        return Item(join, source, name, alias, Span(min(on + 1, span.last), span.last))

    def _named(self, source: Span) -> tuple[str | None, str | None]:
        """The name of a relation, where it is simply named, and its alias."""
        if not source:
            return None, None
        last = source.last - 1
        simple = self.is_name(source.first) and len(list(source)) <= 3
        if len(list(source)) == 1 and simple:
            return self.tokens[last].text, self.tokens[last].text
        if not self.is_name(last):
            return None, None
        named = simple and self.words[source.first + 1] in {"AS", self.words[last]}
        return self.tokens[source.first].text if named else None, self.tokens[last].text

    def _inside(self, scope: Scope) -> None:
        """Finds the queries in parentheses inside a SELECT: relations of its FROM clause, and subqueries."""
        relations = {item.source.first for item in scope.items}
        i = scope.whole.first
        while i < scope.whole.last:
            if self.words[i] == "(" and self._word(i + 1) in {"SELECT", "WITH"}:
                relation = i in relations
                nested = not relation
                self._query(Span(i + 1, self.closing.get(i, scope.whole.last)), scope, nested=nested)
                i = self.closing.get(i, scope.whole.last)
            i += 1


def _closing(words: Sequence[str]) -> dict[int, int]:
    """For each opening parenthesis, bracket or CASE, where it closes."""
    pairs = {")": "(", "]": "[", "}": "{", "END": "CASE"}
    open_at: list[int] = []
    closing: dict[int, int] = {}
    for i, word in enumerate(words):
        if word in {"(", "[", "{", "CASE"}:
            open_at.append(i)
        elif word in pairs and open_at and words[open_at[-1]] == pairs[word]:
            closing[open_at.pop()] = i
    return closing
