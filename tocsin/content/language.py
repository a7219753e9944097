"""How a filter is written: ``class = 'STOCK' and symbol in ('YHOO', 'IBM') and high > 40``.

Conditions are joined by ``and``. A condition is an attribute, an operator and a value: ``=``, ``!=``, ``<``, ``<=``,
``>``, ``>=``, ``starts with 'text'``, ``in (…)``, ``between … and …``, or ``exists`` without a value. Strings are in
single quotes, doubled inside; names that are not plain words are in backticks. Words may be in any case, names and
strings are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tocsin.content.filter import RESERVED, Filter, conjunction
from tocsin.content.predicate import Comparison, Predicate
from tocsin.content.values import Value
from tocsin.errors import FilterError, InvalidError

MOST_TEXT: Final = 4096
MOST_CANONICAL_TEXT: Final = 4 * MOST_TEXT
"""A filter as ``str`` writes it may be longer than it was: ``between`` becomes two conditions, ``1e9`` ten digits."""
MOST_DIGITS: Final = 400
"""Of a whole number; with more it is larger than any in double precision."""
_OPERATORS: Final = {
    "=": Comparison.EQUAL,
    "==": Comparison.EQUAL,
    "!=": Comparison.DIFFERENT,
    "<>": Comparison.DIFFERENT,
    "≠": Comparison.DIFFERENT,
    "<": Comparison.BELOW,
    "<=": Comparison.UP_TO,
    "≤": Comparison.UP_TO,
    ">": Comparison.ABOVE,
    ">=": Comparison.AT_LEAST,
    "≥": Comparison.AT_LEAST,
}
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<string>'(?:[^']|'')*')
      | (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
      | (?P<name>`[^`]+`)
      | (?P<word>[^\W\d]\w*(?:\.\w+)*)
      | (?P<sign>==|!=|<>|<=|>=|[=<>≠≤≥(),])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """What it says, if it is a word of the language."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


def parse(text: str, most: int = MOST_TEXT) -> Filter:
    """The filter that is written there; what is not one is a :class:`FilterError` that says where."""
    if len(text) > most:
        raise _error_at(text, most, f"it has {len(text):,} characters; at most {most:,} are taken")
    return _Reader(text).read()


class _Reader:
    """Reads one filter from front to back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        # With each condition that was read, where it begins; "between" is two.
        self._conditions: list[tuple[Predicate, _Token]] = []

    def read(self) -> Filter:
        """All of it."""
        if self._peek().kind == "end":
            raise self._error("nothing is asked for; write a condition, as in high > 40", self._peek())
        self._read_condition()
        while self._peek().word == "and":
            self._take()
            self._read_condition()
        self._finish()
        try:
            return conjunction(self._first(len(self._conditions)))
        except InvalidError as error:
            raise self._error(str(error), self._first_too_much()) from None

    def _read_condition(self) -> None:
        begins = self._peek()
        self._conditions += [(predicate, begins) for predicate in self._condition()]

    def _first(self, count: int) -> list[Predicate]:
        return [predicate for predicate, _ in self._conditions[:count]]

    def _first_too_much(self) -> _Token:
        """The first condition that cannot be fulfilled together with those before it, or is one too many."""
        for count, (_, begins) in enumerate(self._conditions, 1):
            try:
                conjunction(self._first(count))
            except InvalidError:
                return begins
        raise AssertionError("all conditions together were refused")

    def _finish(self) -> None:
        left = self._peek()
        if left.word == "or":
            raise self._error("'or' is not possible; subscribe once for each alternative, or use in (…)", left)
        if left.kind != "end":
            raise self._error(f"{left.text!r} is not expected here; conditions are joined by 'and'", left)

    def _condition(self) -> list[Predicate]:
        attribute = self._attribute()
        sign = self._take()
        match sign.word:
            case "exists":
                return [self._predicate(attribute, Comparison.EXISTS, ())]
            case "in":
                return [self._predicate(attribute, Comparison.IN, self._list())]
            case "starts":
                self._expect("with", "'starts' goes with 'with': symbol starts with 'YH'")
                return [self._predicate(attribute, Comparison.PREFIX, (self._value(),))]
            case "between":
                return self._between(attribute)
            case word if word in _OPERATORS:
                return [self._predicate(attribute, _OPERATORS[word], (self._value(),))]
        raise self._error(f"an operator is expected after {attribute.text}, such as = or >", sign)

    def _between(self, attribute: _Token) -> list[Predicate]:
        low = self._value()
        self._expect("and", "'between' takes two values: high between 40 and 50")
        high = self._value()
        return [
            self._predicate(attribute, Comparison.AT_LEAST, (low,)),
            self._predicate(attribute, Comparison.UP_TO, (high,)),
        ]

    def _predicate(self, attribute: _Token, operator: Comparison, values: tuple[Value, ...]) -> Predicate:
        try:
            return Predicate(attribute.text.strip("`"), operator, values)
        except InvalidError as error:
            raise self._error(str(error), attribute) from None

    def _attribute(self) -> _Token:
        token = self._take()
        if token.word == "not":
            raise self._error("'not' is not possible; use !=, or the opposite comparison", token)
        if token.kind not in ("word", "name") or (token.kind == "word" and token.word in RESERVED):
            raise self._error("an attribute is expected, as in high > 40", token)
        return token

    def _list(self) -> tuple[Value, ...]:
        self._expect("(", "'in' takes a list: symbol in ('YHOO', 'IBM')")
        values = [self._value()]
        while self._peek().text == ",":
            self._take()
            values.append(self._value())
        self._expect(")", "the list ends with )")
        return tuple(values)

    def _value(self) -> Value:
        token = self._take()
        if token.kind == "string":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number":
            return _number(token.text)
        if token.word in ("true", "false"):
            return token.word == "true"
        hint = f"; a string is written '{token.text}'" if token.kind == "word" else ""
        raise self._error(f"a value is expected{hint}", token)

    def _expect(self, word: str, hint: str) -> None:
        token = self._take()
        if token.word != word:
            raise self._error(hint, token)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        if token.kind != "end":
            self._next += 1
        return token

    def _split(self) -> Iterator[_Token]:
        at = 0
        while True:
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._unreadable(at)
            kind = str(found.lastgroup)
            yield _Token(kind, found[kind], found.start(kind))
            if kind == "end":
                return
            at = found.end()

    def _unreadable(self, at: int) -> FilterError:
        rest = self._text[at:].lstrip()
        token = _Token("", rest[:1], len(self._text) - len(rest))
        if rest.startswith(("'", '"')):
            return self._error("a string is in single quotes, which must be closed; inside, ' is written ''", token)
        return self._error(f"{rest[:1]!r} means nothing here", token)

    def _error(self, reason: str, token: _Token) -> FilterError:
        return _error_at(self._text, token.at, reason)


def _error_at(text: str, at: int, reason: str) -> FilterError:
    return FilterError(reason, line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))


def _number(text: str) -> float:
    # Python reads no whole number of thousands of digits.
    return float(text) if any(sign in text for sign in ".eE") or len(text) > MOST_DIGITS else int(text)
