"""The text of an application file, cut into words and into statements, with the place of everything in it.

The cutting is sqlglot's tokenizer for Spark, so that a semicolon in a string, a comment or a quoted name ends nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import ClassVar

import msgspec
from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from tocsin.errors import StatementError

_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
_WORDS = re.compile(r"\S+")
_OPENING = re.compile(r"""/\*|['"`]""")


class _Tokenizer(Spark.Tokenizer):
    """Spark's, but for the statements (SHOW, ...) that sqlglot would leave uncut as commands to pass on."""

    COMMANDS: ClassVar[set[TokenType]] = set()


class Word(msgspec.Struct, frozen=True):
    """A word, number, sign or quoted text, exactly as in the file. ``string`` is the content of a string literal."""

    text: str
    start: int
    string: str | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Source:
    """The text of a file, which can tell the line and column, both from 1, of each of its characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and column of the character at ``offset``."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def error(self, reason: str, offset: int, statement: str = "") -> StatementError:
        """An error about what stands at ``offset``."""
        line, column = self.place(offset)
        return StatementError(reason, line=line, column=column, statement=statement)

    def statements(self) -> list[list[Word]]:
        """The words of each statement, without the semicolon; empty statements are left out."""
        statements: list[list[Word]] = [[]]
        for token in self._tokens():
            if token.token_type is TokenType.SEMICOLON:
                statements.append([])
            else:
                statements[-1].extend(self._words(token))
        return [words for words in statements if words]

    def _tokens(self) -> list[Token]:
        tokenizer = _Tokenizer()
        try:
            tokens = tokenizer.tokenize(self.text)
        except TokenError:
            raise self._unclosed_text(tokenizer.tokens) from None
        # A suffixed number (10L) comes as three tokens with one place; one stands for them.
        return list({token.start: token for token in tokens}.values())

    def _words(self, token: Token) -> list[Word]:
        """The token as a word; one that joins several (``PRIMARY KEY``) as those."""
        text = self.text[token.start : token.end + 1]
        if token.token_type in _STRINGS:
            return [Word(text, token.start, token.text)]
        if text.startswith("`"):
            return [Word(text, token.start)]
        return [Word(found[0], token.start + found.start()) for found in _WORDS.finditer(text)]

    def _unclosed_text(self, before: list[Token]) -> StatementError:
        """The error for a string, quoted name or comment that never ends, somewhere after the tokens ``before``."""
        opening = _OPENING.search(self.text, before[-1].end + 1 if before else 0)
        if opening is None:
            return StatementError("cannot be read as SQL; look for a quote or comment that is not closed")
        what = {"/*": "comment", "`": "quoted name"}.get(opening[0], "string")
        return self.error(f"the {what} that begins here is never closed", opening.start())
