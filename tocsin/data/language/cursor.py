"""A reading position in one statement: takes its words one by one, or says what was expected instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from tocsin.data.language.source import Source, Word
from tocsin.errors import InvalidError, StatementError
from tocsin.model import names
from tocsin.model.quoting import shorten
from tocsin.schema.definitions import Column
from tocsin.schema.types import ColumnType, parse_type

_INTEGER = re.compile(r"[0-9]{1,9}")
_CLOSING = {"(": ")", "<": ">"}


class WordCursor:
    """Reads the words of one statement of ``source``; every refusal carries the place of the word it is about."""

    def __init__(self, source: Source, words: list[Word]) -> None:
        self.source = source
        self.text = source.text[words[0].start : words[-1].end]
        self.place = source.place(words[0].start)
        self._words = words
        self._next = 0

    @property
    def word(self) -> Word | None:
        """The next word; None at the end of the statement."""
        return self._words[self._next] if self._next < len(self._words) else None

    def accept(self, *keywords: str) -> bool:
        """Takes these words if they are the next ones, all of them."""
        following = self._words[self._next : self._next + len(keywords)]
        if [word.text.upper() for word in following] != list(keywords):
            return False
        self._next += len(keywords)
        return True

    def expect(self, *keywords: str) -> None:
        """Takes these words, one after the other."""
        for keyword in keywords:
            self.choose(keyword)

    def choose(self, *keywords: str) -> str:
        """Takes one of these words, and says which."""
        for keyword in keywords:
            if self.accept(keyword):
                return keyword
        raise self.unexpected_word(_alternatives(keywords), keywords)

    def end(self) -> None:
        """Nothing may be left."""
        if self.word:
            raise self.unexpected_word("';'")

    def rest(self) -> Word:
        """All that is left, as it stands in the file."""
        if self.word is None:
            raise self.unexpected_word("a query")
        start, end = self.word.start, self._words[-1].end
        self._next = len(self._words)
        return Word(self.source.text[start:end], start)

    def name(self, what: str) -> str:
        """Takes the name of a ``what``."""
        word = self._take(f"the name of a {what}")
        if word.text.startswith("`"):
            raise self.error(f"backquoted names are not supported; write {what} names plainly", word)
        if fault := names.fault(word.text):
            raise self.error(f"{shorten(word.text)} {fault}", word)
        return word.text

    def string(self, what: str) -> str:
        """Takes a string literal, which must not be empty."""
        word = self.word
        if word is None or not word.string:
            raise self.unexpected_word(f"{what} in quotes")
        self._next += 1
        return word.string

    def matching(self, pattern: re.Pattern[str], what: str) -> str:
        """Takes a word that is as a whole of this pattern."""
        if self.word is None or not pattern.fullmatch(self.word.text):
            raise self.unexpected_word(what)
        return self._take(what).text

    def count(self, what: str, largest: int) -> int:
        """Takes a whole number from 1 to ``largest``."""
        expected, word = f"{what} from 1 to {largest}", self.word
        number = int(self.matching(_INTEGER, expected))
        if not 1 <= number <= largest:
            raise self.error(f"expected {expected}, found {number}", word)
        return number

    def columns(self, what: str, after: Callable[[Column], None] = lambda _: None) -> tuple[Column, ...]:
        """Takes ``(name TYPE, ...)``, possibly empty; each name once. ``after`` may take what follows a column."""
        self.expect("(")
        columns: list[Column] = []
        if self.accept(")"):
            return ()
        separator = ","
        while separator == ",":
            columns.append(self._column(what, columns))
            after(columns[-1])
            separator = self.choose(",", ")")
        return tuple(columns)

    def error(self, reason: str, word: Word | None = None) -> StatementError:
        """An error about ``word``, or about the place where the statement ends."""
        return self.source.error(reason, word.start if word else self._words[-1].end, self.text)

    def unexpected_word(self, expected: str, keywords: tuple[str, ...] = ()) -> StatementError:
        """The error for a next word that is not what was expected."""
        hint = names.suggestion(self.word.text, keywords) if self.word else ""
        return self.error(f"expected {expected}, found {self._show(self.word)}{hint}", self.word)

    def _take(self, what: str) -> Word:
        word = self.word
        if word is None:
            raise self.unexpected_word(what)
        self._next += 1
        return word

    def _column(self, what: str, before: list[Column]) -> Column:
        place = self.word
        name = self.name(what)
        if names.find_repeated([*(column.name for column in before), name]):
            raise self.error(f"{what} '{name}' occurs twice", place)
        return Column(name, self._type())

    def _type(self) -> ColumnType:
        first = self._take("a type")
        text = first.text
        if self.word and self.word.text in _CLOSING:
            text += self._take_brackets()
        try:
            return parse_type(text)
        except InvalidError as error:
            raise self.error(str(error), first) from None

    def _take_brackets(self) -> str:
        """Takes everything from an opening bracket to the one that closes it; comments in between fall away."""
        opening = self._take("a bracket")
        taken, waiting = [opening.text], [_CLOSING[opening.text]]
        while waiting:
            word = self._take(repr(waiting[-1]))
            taken.append(word.text)
            if word.text in _CLOSING:
                waiting.append(_CLOSING[word.text])
            elif word.text == waiting[-1]:
                waiting.pop()
        return " ".join(taken)

    @staticmethod
    def _show(word: Word | None) -> str:
        if word is None:
            return "the end of the statement"
        return shorten(word.text) if word.string is not None else f"'{shorten(word.text)}'"


def _alternatives(keywords: tuple[str, ...]) -> str:
    quoted = [keyword if keyword.isalpha() else f"'{keyword}'" for keyword in keywords]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
