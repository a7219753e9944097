"""The text of a channel's body as tokens that keep their exact place in it.

The body is changed by replacing small spans of it, and all else goes to Spark as its author wrote it; a syntax tree
would lose the places. Tokens are told apart so far only that a keyword is never taken for a string or a quoted name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from tocsin.data.language.source import Source
from tocsin.errors import StatementError

_PAIRS = {")": "(", "]": "[", "}": "{", "END": "CASE"}
_TWO_WORDS = frozenset({"GROUP", "ORDER", "PARTITION", "SORT", "CLUSTER", "DISTRIBUTE"})
_LITERALS = frozenset(
    {TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.BYTE_STRING, TokenType.NUMBER}
)


@dataclass(frozen=True)
class Span:
    """A run of tokens, ``first`` up to but not including ``last``."""

    first: int
    last: int

    def __bool__(self) -> bool:
        return self.last > self.first

    def __len__(self) -> int:
        return max(self.last - self.first, 0)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last))

    def __contains__(self, index: int) -> bool:
        return self.first <= index < self.last


NOTHING = Span(0, 0)


class TokenKind(Enum):
    """What a token can be: a word (a keyword or a name), a quoted name, a literal, or a sign."""

    WORD = "word"
    QUOTED = "quoted"
    LITERAL = "literal"
    SIGN = "sign"


class Text:
    """A body's tokens. ``words`` holds each in upper case, so that keywords can be compared; quoted names and names
    after a dot stand there in backquotes, literals as their text in the body, and so equal no keyword."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.source = Source(text)
        tokens = self._tokens()
        self.starts = [token.start for token in tokens]
        self.ends = [token.end + 1 for token in tokens]
        self.kinds = [_kind(token) for token in tokens]
        self.names = [token.text for token in tokens]
        self.words = [self._as_word(i) for i in range(len(tokens))]
        self.closing = _closing(self.words)
        self._check()

    @property
    def whole(self) -> Span:
        """All tokens."""
        return Span(0, len(self.words))

    def word(self, index: int) -> str:
        """The word at ``index``; empty beyond the ends."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def slice(self, span: Span) -> str:
        """The text of ``span``, exactly."""
        return self.text[self.starts[span.first] : self.ends[span.last - 1]] if span else ""

    def is_name(self, index: int) -> bool:
        """Whether the token can be an identifier; keywords are told apart by the caller."""
        return self.kinds[index] in {TokenKind.WORD, TokenKind.QUOTED}

    def error(self, reason: str, token: int) -> StatementError:
        """An error at a token."""
        return self.source.error(reason, self.starts[token] if self.starts else 0)

    def calls(self, name: str) -> Iterator[int]:
        """Where a function of that name is called."""
        return (i for i, word in enumerate(self.words) if word == name and self.word(i + 1) == "(")

    def call(self, index: int) -> Span:
        """The whole call that begins at token ``index``."""
        return Span(index, self.closing.get(index + 1, index + 1) + 1)

    def arguments(self, call: int) -> list[Span]:
        """The arguments of the function called at token ``call``."""
        return [part for part in self.split(Span(call + 2, self.call(call).last - 1), {","}) if part]

    def level(self, span: Span) -> Iterator[int]:
        """The tokens of ``span`` outside any parentheses, brackets and CASE … END in it."""
        i = span.first
        while i < span.last:
            yield i
            i = max(self.closing.get(i, 0), i + 1)

    def split(self, span: Span, words: Collection[str]) -> list[Span]:
        """``span`` cut at each of ``words`` that stands at its top level."""
        return _cut(span, [i for i in self.level(span) if self.words[i] in words])

    def conjuncts(self, condition: Span) -> list[Span]:
        """The parts of a condition joined by AND; the whole, if there is an OR at that level."""
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
        return [nested for part in _cut(condition, cuts) for nested in self._unwrap(part)]

    def opens_query(self, index: int) -> bool:
        """Whether a query in parentheses begins at the token."""
        while self.word(index) == "(":
            index += 1
            if self.word(index) in {"SELECT", "WITH"}:
                return True
        return False

    def _unwrap(self, part: Span) -> list[Span]:
        """A conjunct in parentheses is looked into, unless it is a query."""
        if part and self.words[part.first] == "(" and self.closing.get(part.first) == part.last - 1:
            return [part] if self.opens_query(part.first) else self.conjuncts(Span(part.first + 1, part.last - 1))
        return [part] if part else []

    def _tokens(self) -> list[Token]:
        try:
            tokens = Spark.Tokenizer().tokenize(self.text)
        except TokenError:
            reason = "the query cannot be read as SQL; look for a quote or comment that is not closed"
            raise StatementError(reason, line=1, column=1) from None
        # A suffixed number (10L) comes as three tokens with one place; the first stands for them.
        return list({token.start: token for token in reversed(tokens)}.values())[::-1]

    def _as_word(self, i: int) -> str:
        if self.kinds[i] is TokenKind.LITERAL:
            return self.text[self.starts[i] : self.ends[i]]
        after_dot = i > 0 and self.names[i - 1] == "." and self.kinds[i - 1] is TokenKind.SIGN
        if self.kinds[i] is TokenKind.QUOTED or (after_dot and self.kinds[i] is TokenKind.WORD):
            return f"`{self.names[i].upper()}`"
        return self.names[i].upper()

    def _check(self) -> None:
        for i, word in enumerate(self.words):
            if word in _TWO_WORDS and self.word(i + 1) == "BY":
                raise self.error(f"write {word} BY with nothing but blanks between", i)
            if word.startswith("/*+"):
                raise self.error("a body takes no hints; they would not fit the query that runs for all", i)
            if self.is_name(i) and self.names[i].startswith("__"):
                raise self.error(f"{self.names[i]}: names that begin with two underscores are reserved", i)


def _kind(token: Token) -> TokenKind:
    if token.token_type is TokenType.IDENTIFIER:
        return TokenKind.QUOTED
    if token.token_type in _LITERALS:
        return TokenKind.LITERAL
    return TokenKind.WORD if token.text[:1].isalpha() or token.text[:1] == "_" else TokenKind.SIGN


def _cut(span: Span, cuts: list[int]) -> list[Span]:
    return [Span(a + 1, b) for a, b in zip([span.first - 1, *cuts], [*cuts, span.last], strict=True)]


def _closing(words: Sequence[str]) -> dict[int, int]:
    """For each opening parenthesis, bracket or CASE, where it closes."""
    open_at: list[int] = []
    closing: dict[int, int] = {}
    for i, word in enumerate(words):
        if word in _PAIRS.values():
            open_at.append(i)
        elif word in _PAIRS and open_at and words[open_at[-1]] == _PAIRS[word]:
            closing[open_at.pop()] = i
    return closing
