"""Keeps the columns that a rewrite adds to a SELECT out of its ``*`` and ``alias.*``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tocsin.data.compiler.patch import Patch
from tocsin.data.compiler.scopes import Body, Scope, Span

_BEFORE = frozenset({"SELECT", "DISTINCT", "ALL", ",", "(", "."})


def bare_stars(body: Body, scope: Scope) -> list[int]:
    """The stars of a SELECT that stand for all its relations."""
    return [star for star in _stars(body, scope) if body.words[star - 1] != "."]


def hide(body: Body, scope: Scope, patch: Patch, added: Mapping[str, list[str]]) -> None:
    """Hides the columns ``added`` to each relation, by its alias."""
    for star in _stars(body, scope):
        if body.words[star - 1] == ".":
            item = scope.item(body.names[star - 2]) if body.word(star - 3) != "." else None
            hidden = added.get(item.alias or "", []) if item else []
        else:
            hidden = [column for columns in added.values() for column in columns]
        if hidden:
            _hide(body, star, patch, ", ".join(hidden))


def _stars(body: Body, scope: Scope) -> Iterator[int]:
    for i in scope.own(scope.select):
        counts = body.word(i - 2) == "COUNT" and body.word(i - 1) == "(" and body.word(i + 1) == ")"
        if body.words[i] == "*" and body.word(i - 1) in _BEFORE and not counts:
            yield i


def _hide(body: Body, star: int, patch: Patch, hidden: str) -> None:
    if body.word(star + 1) == "EXCEPT" and body.word(star + 2) == "(":
        patch.before(star + 3, f"{hidden}, ")
    else:
        patch.replace(Span(star, star + 1), f"* EXCEPT ({hidden})")
