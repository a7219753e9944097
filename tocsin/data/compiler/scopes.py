"""The structure of a channel's body that a rewrite needs: its SELECTs, what they read, and their conditions.

Whether the body is valid is for Spark to say; on text that is not, the structure found here is merely useless. What is
not understood (an unusual join, a relation without a name) is left as unknown, and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tocsin.data.compiler.text import NOTHING, Span, Text

__all__ = ["Body", "Item", "Scope", "Span"]

_SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_AFTER_FROM = frozenset({"LATERAL VIEW", "WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY"})
_AT_END = frozenset({"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET"})
_CLAUSES = frozenset({"SELECT", "FROM"}) | _AFTER_FROM | _AT_END
_JOIN_WORDS = frozenset({"INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL"})


@dataclass(frozen=True)
class Item:
    """One relation of a FROM clause and how it is joined to those before it.

    ``join`` is "" for the first, "," or the words before JOIN ("INNER", "LEFT OUTER", ...), and ends in "USING" or
    "LATERAL" where there is one. ``name`` is set when the relation is simply named; ``alias`` is what the rest of the
    SELECT calls it. ``whole`` is all of it, its condition included.
    """

    join: str
    whole: Span
    source: Span
    name: str | None
    alias: str | None
    on: Span

    @property
    def key(self) -> int:
        """Tells this relation from every other of the body."""
        return self.whole.first

    @property
    def movable(self) -> bool:
        """Whether it may change places with others of its kind."""
        return self.join in {"", ",", "INNER", "CROSS"}

    @property
    def inner(self) -> bool:
        """Whether no row is kept for want of a match."""
        return not set(self.join.split()) - {",", "INNER", "CROSS", "NATURAL", "USING"}

    @property
    def shown(self) -> bool:
        """Whether its columns are among those of the FROM clause."""
        return not set(self.join.split()) & {"SEMI", "ANTI"}


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
    children: list[Scope] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """How many subqueries this SELECT is inside of, or is."""
        return self.nested + (self.parent.depth if self.parent else 0)

    @property
    def home(self) -> Scope:
        """The SELECT whose row of the subscriptions this one takes parameters from: its own, or that around it."""
        return self.parent if self.nested and self.parent else self

    def item(self, alias: str) -> Item | None:
        """The relation that this SELECT calls ``alias``."""
        folded = alias.casefold()
        return next((i for i in self.items if i.alias and i.alias.casefold() == folded), None)

    def own(self, span: Span) -> Iterator[int]:
        """The tokens of ``span`` that belong to this SELECT and to none inside it."""
        return (i for i in span if not any(i in child.whole for child in self.children))

    def joins(self, *words: str) -> bool:
        """Whether any relation is joined with one of ``words``."""
        return any(set(words) & set(item.join.split()) for item in self.items)


class Body(Text):
    """The text of a channel's query with its SELECTs, each before those inside it.

    ``main`` is the SELECT that gives the result; None where that is a UNION or the like. ``common`` are the tokens that
    name common table expressions.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scopes: list[Scope] = []
        self.common: list[int] = []
        self.main = self._query(self.whole, None, nested=False)

    def scope(self, token: int) -> Scope | None:
        """The innermost SELECT around a token."""
        around = [s for s in self.scopes if token in s.whole]
        return max(around, key=lambda s: s.whole.first) if around else None

    def conditions(self, scope: Scope) -> list[tuple[Span, Item | None]]:
        """The conjuncts of a SELECT: of WHERE (with None) and of each ON (with its relation)."""
        found: list[tuple[Span, Item | None]] = [(c, None) for c in self.conjuncts(scope.where)]
        for item in scope.items:
            found += [(c, item) for c in self.conjuncts(item.on)]
        return found

    def clauses(self, span: Span) -> dict[str, Span]:
        """The clauses of a SELECT, or of a whole query, by their first words, without those words."""
        starts = [(word, i) for i in self.level(span) if (word := self._clause(i))]
        ends = [*(i for _, i in starts), span.last][1:]
        spans: dict[str, Span] = {}
        for (word, first), last in zip(starts, ends, strict=True):
            spans.setdefault(word, Span(first + len(word.split()) - (word.endswith(" BY")), last))
        return spans

    def _clause(self, i: int) -> str:
        """The clause that begins at a token, or nothing."""
        word = self.words[i]
        if word == "LATERAL" and self.word(i + 1) == "VIEW":
            return "LATERAL VIEW"
        if word == "FROM" and self.word(i - 1) == "DISTINCT" and self.word(i - 2) in {"IS", "NOT"}:
            return ""
        return word if word in _CLAUSES else ""

    def _query(self, span: Span, parent: Scope | None, *, nested: bool) -> Scope | None:
        """Finds the SELECTs of a query: of its WITH clause, of its branches, and those inside them.

        Returns the SELECT of its only branch; None if there are several.
        """
        start = self._with(span, parent, nested=nested) if self.word(span.first) == "WITH" else span.first
        cuts = [i for i in self.level(Span(start, span.last)) if self._separates(i)]
        spans = [Span(a, b) for a, b in zip([start, *(i + 1 for i in cuts)], [*cuts, span.last], strict=True)]
        branches = [self._branch(branch, parent, nested=nested) for branch in spans]
        return branches[0] if len(branches) == 1 else None

    def _separates(self, i: int) -> bool:
        """Whether a set operator stands there, and not the EXCEPT of ``* EXCEPT (column)``."""
        return self.words[i] in _SET_OPERATORS and self.word(i - 1) != "*"

    def _branch(self, branch: Span, parent: Scope | None, *, nested: bool) -> Scope | None:
        first = branch.first
        while first < branch.last and self.words[first] in {"ALL", "DISTINCT"}:
            first += 1
        if self.word(first) == "(":
            end = self.closing.get(first, branch.last)
            inside = self._query(Span(first + 1, end), parent, nested=nested)
            return inside if end + 1 == branch.last else None
        return self._select(Span(first, branch.last), parent, nested=nested) if self.word(first) == "SELECT" else None

    def _with(self, span: Span, parent: Scope | None, *, nested: bool) -> int:
        """Reads the common table expressions; where the main query begins."""
        for i in self.level(span):
            if self.words[i] in {"SELECT", "("} and self.word(i - 1) == ")":
                return i
            if self.words[i] == "(" and self.word(i - 1) == "AS":
                self._query(Span(i + 1, self.closing.get(i, span.last)), parent, nested=nested)
            elif self.words[i - 1] in {"WITH", ","} and self.is_name(i):
                self.common.append(i)
        return span.last

    def _select(self, span: Span, parent: Scope | None, *, nested: bool) -> Scope:
        clauses = self.clauses(span)
        scope = Scope(
            number=len(self.scopes),
            parent=parent,
            nested=nested,
            whole=span,
            select=clauses["SELECT"],
            clause=clauses.get("FROM", NOTHING),
            items=self._items(clauses.get("FROM", NOTHING)),
            where=clauses.get("WHERE", NOTHING),
        )
        self.scopes.append(scope)
        if parent is not None:
            parent.children.append(scope)
        self._inside(scope)
        return scope

    def _inside(self, scope: Scope) -> None:
        """Finds the queries in parentheses inside a SELECT: relations of its FROM clause, and subqueries."""
        relations = {item.key for item in scope.items}
        i = scope.whole.first
        while i < scope.whole.last:
            if self.opens_query(i):
                end = self.closing.get(i, scope.whole.last)
                self._query(Span(i + 1, end), scope, nested=i not in relations)
                i = end
            i += 1

    def _items(self, clause: Span) -> list[Item]:
        """The relations of a FROM clause, in order."""
        marks = [i for i in self.level(clause) if self.words[i] in {",", "JOIN"} and not self._in_values(i, clause)]
        joins = [self._join(mark) for mark in marks]
        starts = [clause.first, *(mark + 1 for mark in marks)]
        ends = [mark - len(words) for mark, words in zip(marks, joins, strict=True)]
        kinds = ["", *(" ".join(words) or self._default(mark) for mark, words in zip(marks, joins, strict=True))]
        spans = [Span(a, b) for a, b in zip(starts, [*ends, clause.last], strict=True)]
        return [self._item(kind, span) for kind, span in zip(kinds, spans, strict=True) if span]

    def _in_values(self, i: int, clause: Span) -> bool:
        """Whether a comma is one of ``VALUES (1), (2)``."""
        first = i - 1
        while self.words[i] == "," and first > clause.first and self.words[first] in {")", ","}:
            first = next((a for a, b in self.closing.items() if b == first), first) - 1
        return self.words[first] == "VALUES"

    def _default(self, mark: int) -> str:
        return "INNER" if self.words[mark] == "JOIN" else ","

    def _join(self, mark: int) -> list[str]:
        """The words in front of a JOIN that say what kind it is."""
        first = mark
        while self.words[mark] == "JOIN" and self.word(first - 1) in _JOIN_WORDS:
            first -= 1
        return self.words[first:mark]

    def _item(self, join: str, span: Span) -> Item:
        if self.words[span.first] == "LATERAL":
            return Item(f"{join} LATERAL".strip(), span, span, None, None, NOTHING)
        end = next((i for i in self.level(span) if self.words[i] in {"ON", "USING"}), span.last)
        if self.word(end) == "USING" and end < span.last:
            join = f"{join} USING".strip()
        source = Span(span.first, end)
        name, alias = self._name_and_alias(source)
        return Item(join, span, source, name, alias, self._on(end, span))

    def _on(self, end: int, span: Span) -> Span:
        return Span(end + 1, span.last) if end < span.last and self.words[end] == "ON" else NOTHING

    def _name_and_alias(self, source: Span) -> tuple[str | None, str | None]:
        """The name of a relation, where it is simply named, and its alias."""
        last = source.last - 1
        if not source or not self.is_name(last):
            return None, None
        if len(source) == 1:
            return self.names[last], self.names[last]
        if self.words[source.first] == "(":
            return None, self.names[last] if self._ends_in_alias(self.closing.get(source.first, last), last) else None
        if self.is_name(source.first) and self._ends_in_alias(source.first, last):
            return self.names[source.first], self.names[last]
        return None, None

    def _ends_in_alias(self, end: int, alias: int) -> bool:
        """Whether a relation that ends at ``end`` is followed by nothing but an alias."""
        return alias == end + 1 or (alias == end + 2 and self.words[end + 1] == "AS")
