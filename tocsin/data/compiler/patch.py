"""Small replacements in a text, of which the outermost wins where they overlap."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tocsin.data.compiler.text import Span, Text


@dataclass(frozen=True)
class Rendered:
    """A changed text. ``pieces`` says of each of its pieces where it begins, where it was, and whether it is new."""

    text: str
    pieces: tuple[tuple[int, int, bool], ...]

    def origin(self, offset: int) -> int:
        """Where a character of the changed text was before; for what is new, where that was put."""
        start, was, new = self.pieces[max(bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1, 0)]
        return was if new else was + offset - start


class Patch:
    """Collects replacements of spans of a text and renders the text, or a part of it, with them."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._edits: list[tuple[int, int, str]] = []

    def replace(self, span: Span, text: str) -> None:
        """Puts ``text`` in the place of ``span``, over any replacement made inside it before."""
        self._edits.append((self._text.starts[span.first], self._text.ends[span.last - 1], text))

    def before(self, token: int, text: str) -> None:
        """Inserts ``text`` in front of a token."""
        start = self._text.starts[token]
        self._edits.append((start, start, text))

    def after(self, token: int, text: str) -> None:
        """Inserts ``text`` behind a token."""
        end = self._text.ends[token]
        self._edits.append((end, end, text))

    def render(self, span: Span) -> str:
        """The text of ``span`` with the replacements inside it."""
        return self.render_places(span).text

    def render_places(self, span: Span) -> Rendered:
        """The same, with the places where things were."""
        start, end = self._text.starts[span.first], self._text.ends[span.last - 1]
        inside = [edit for edit in self._edits if start <= edit[0] and edit[1] <= end]
        parts: list[str] = []
        pieces: list[tuple[int, int, bool]] = []
        length, at = 0, start
        # At one place, insertions come first, then the longest replacement.
        for first, last, text in sorted(inside, key=lambda edit: (edit[0], edit[1] > edit[0], -edit[1])):
            if first < at:
                continue
            pieces += [(length, at, False), (length + first - at, first, True)]
            parts += [self._text.text[at:first], text]
            length += first - at + len(text)
            at = last
        pieces.append((length, at, False))
        return Rendered("".join([*parts, self._text.text[at:end]]), tuple(pieces))
