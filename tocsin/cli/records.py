"""The records of a file, one by one as JSON text, with the line each begins at. However large the file, little of it
is in memory.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, NoReturn

import msgspec

from tocsin.errors import InvalidError
from tocsin.schema.definitions import Dataset
from tocsin.schema.refusals import UNDECODABLE
from tocsin.schema.types import Kind

Format = Literal["ndjson", "json", "csv"]
ENDINGS: Final[Mapping[str, Format]] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}

_CHUNK_BYTES: Final = 1 << 16
# Far more than a feed takes for one record: what is longer is not a record but a missing bracket.
_LONGEST_RECORD: Final = 4 << 20
_WRITTEN_AS_TEXT: Final = frozenset({Kind.STRING, Kind.DATE, Kind.TIMESTAMP})
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class SourceRecord(NamedTuple):
    """A record's JSON text, and the line of the file it begins at."""

    line: int
    text: bytes


def detect_format(stream: io.BufferedReader) -> Format:
    """Whether JSON text is one record per line, or an array or spread-out objects; nothing is read off the stream."""
    beginning = stream.peek(_CHUNK_BYTES).removeprefix(codecs.BOM_UTF8).lstrip()
    first, newline, _ = beginning.partition(b"\n")
    if beginning.startswith(b"[") or (newline and beginning.startswith(b"{") and not _is_json(first)):
        return "json"
    return "ndjson"


def lines(stream: io.BufferedReader) -> Iterator[SourceRecord]:
    """The lines that are not blank; whether each is a record is for the server to say."""
    for number, line in enumerate(stream, start=1):
        text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if text:
            yield SourceRecord(number, text)


def rows(stream: io.BufferedReader, dataset: Dataset | None = None) -> Iterator[SourceRecord]:
    """The rows of a CSV file whose first row names columns of ``dataset``; an empty field is null.

    Without a dataset, fields that are numbers, true or false in JSON are that, and all others are text.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = csv.reader(text)
    try:
        header = next(reader, None)
        if not header:
            raise InvalidError("the file is empty; the first row must name the columns")
        kinds = [_kind(dataset, name) for name in header]
        begin = reader.line_num + 1
        for row in reader:
            if row:
                yield SourceRecord(begin, _object(header, kinds, row, begin))
            begin = reader.line_num + 1
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidError(f"line {reader.line_num + 1}: not CSV in UTF-8: {error}") from None
    finally:
        text.detach()  # or the stream would be closed with it


def _kind(dataset: Dataset | None, name: str) -> Kind | None:
    """Of which kind a column's values are; None if that is for each to say."""
    if dataset is None:
        return None
    column = dataset.column(name)
    return column.type.kind if column else Kind.STRING


def _object(header: list[str], kinds: list[Kind | None], row: list[str], line: int) -> bytes:
    if len(row) != len(header):
        raise InvalidError(f"line {line}: {len(row)} fields, but the first row names {len(header)} columns")
    members = {name: _value(kind, field) for name, kind, field in zip(header, kinds, row, strict=True)}
    return msgspec.json.encode(members)


def _value(kind: Kind | None, field: str) -> msgspec.Raw | str | None:
    """The field as JSON of its column's type; one that cannot be is left as text, for the server to refuse."""
    if kind is None:
        return _guess(field)
    if kind in _WRITTEN_AS_TEXT:
        return field or None
    text = field.strip()
    if kind is Kind.BOOLEAN:
        text = text.lower()
    if not text:
        return None
    return msgspec.Raw(text.encode()) if _is_json(text.encode()) else field


def _guess(field: str) -> msgspec.Raw | str | None:
    text = field.strip()
    try:
        msgspec.json.decode(text, type=float | bool)
    except UNDECODABLE:
        return field or None
    return msgspec.Raw(text.encode())


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except UNDECODABLE:
        return False
    return True


def values(stream: io.BufferedReader) -> Iterator[SourceRecord]:
    """The elements of a JSON array, or objects one after the other."""
    scanner = _Scanner(stream)
    if scanner.skip("["):
        yield from _elements(scanner)
    else:
        while not scanner.at_end:
            yield scanner.value()


def _elements(scanner: _Scanner) -> Iterator[SourceRecord]:
    if not scanner.skip("]"):
        yield scanner.value()
        while scanner.skip(","):
            yield scanner.value()
        scanner.expect("]")
    scanner.end()


class _Scanner:
    """Reads JSON values off a stream, keeping no more of it than the value at hand."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder(parse_constant=_no_constant)
        self._text, self._position, self._line, self._exhausted = "", 0, 1, False

    @property
    def at_end(self) -> bool:
        """Whether nothing but white space is left."""
        return not self._at_something()

    def skip(self, sign: str) -> bool:
        """Takes ``sign`` if it comes next."""
        if not self._at_something() or self._text[self._position] != sign:
            return False
        self._position += 1
        return True

    def expect(self, sign: str) -> None:
        """Takes ``sign``, which must come next."""
        if not self.skip(sign):
            self._refuse(f"expected '{sign}'")

    def end(self) -> None:
        """Nothing may follow."""
        if not self.at_end:
            self._refuse("something follows the array")

    def value(self) -> SourceRecord:
        """Takes a value."""
        if not self._at_something():
            self._refuse("the file ends in the middle")
        while True:
            try:
                _, end = self._json.raw_decode(self._text, self._position)
            except (ValueError, RecursionError) as error:
                self._more_or_refuse(str(error))
                continue
            if end < len(self._text) or not self._read():
                break
        record = SourceRecord(self._line, self._text[self._position : end].encode())
        self._line += self._text.count("\n", self._position, end)
        self._position = end
        return record

    def _at_something(self) -> bool:
        """Goes past white space; False at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._position)
            assert found is not None
            self._line += self._text.count("\n", self._position, found.end())
            self._position = found.end()
            if self._position < len(self._text):
                return True
            if not self._read():
                return False

    def _more_or_refuse(self, reason: str) -> None:
        too_long = len(self._text) - self._position > _LONGEST_RECORD
        if too_long or not self._read():
            self._refuse(reason)

    def _read(self) -> bool:
        """Adds more of the file to the text, at least as much again; False at its end."""
        if self._exhausted:
            return False
        kept = self._text[self._position :]
        chunk = self._stream.read(max(_CHUNK_BYTES, len(kept)))
        try:
            self._text, self._position = kept + self._decoder.decode(chunk, final=not chunk), 0
        except UnicodeDecodeError as error:
            self._refuse(f"not UTF-8 text: {error.reason}")
        self._exhausted = not chunk
        return not self._exhausted

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidError(f"line {self._line}: not JSON: {reason}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
