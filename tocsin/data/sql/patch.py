"""Small replacements in a text, of which the outermost wins where they overlap."""

from __future__ import annotations

from tocsin.data.sql.scopes import Body, Span


class Patch:
    """Collects replacements of spans of a body and renders the body, or a part of it, with them."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._edits: list[tuple[int, int, str]] = []

    def replace(self, span: Span, text: str) -> None:
        """Puts ``text`` in the place of ``span``, over any replacement made inside it before."""
        tokens = self._body.tokens
        self._edits.append((tokens[span.first].start, tokens[span.last - 1].end + 1, text))

    def before(self, token: int, text: str) -> None:
        """Inserts ``text`` in front of a token."""
        start = self._body.tokens[token].start
        self._edits.append((start, start, text))

    def render(self, span: Span) -> str:
        """The text of ``span`` with the replacements inside it."""
        tokens = self._body.tokens
        start, end = tokens[span.first].start, tokens[span.last - 1].end + 1
        inside = sorted(
            (edit for edit in self._edits if start <= edit[0] and edit[1] <= end), key=lambda edit: (edit[0], -edit[1])
        )
        parts, at = [], start
        for first, last, text in inside:
            if first < at:
                continue
            parts += [self._body.text[at:first], text]
            at = last
        return "".join([*parts, self._body.text[at:end]])
