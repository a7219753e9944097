"""Publications on their way in: JSON decoded, checked against the dataset's columns and made canonical.

A record is an object whose names are the declared columns, exactly. Columns it leaves out are null, except those a
record cannot be without: the primary key and the slicing column. Good records are accepted whatever the others in
the same request are; each refused one is answered with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from tocsin.errors import InvalidError
from tocsin.model import names
from tocsin.model.messages import LISTED, Refusal
from tocsin.model.terms import foreign
from tocsin.schema.definitions import Dataset, slicing_columns
from tocsin.schema.json_types import attribute, record_type
from tocsin.schema.losses import lossy
from tocsin.schema.normal import normaliser
from tocsin.schema.refusals import UNDECODABLE, describe_undecodable, inexact, refusal

MAX_RECORD_BYTES: Final = 1 << 20
_LINES_TYPES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)
_UNLISTED: Final = "not looked at"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

T = TypeVar("T")


class Batch(msgspec.Struct, frozen=True):
    """What one request brought: for each accepted record its canonical JSON ``lines[i]``, without a newline, the
    value of the slicing column ``slicing[i]``, a tuple where there are several, and of the primary key ``keys[i]``
    (None where there is none), and its place in the request ``indexes[i]``. Of the refusals the first are listed, and
    the others counted."""

    lines: list[bytes]
    slicing: list[Any]
    keys: list[Any]
    refusals: list[Refusal]
    unlisted: int = 0
    indexes: Sequence[int] = ()

    def without(self, faults: Sequence[str | None], most: int = LISTED) -> Batch:
        """The same, but for those of the records that have a fault; at ``most`` so many refusals are listed."""
        good = [number for number, fault in enumerate(faults) if fault is None]
        if len(good) == len(faults):
            return self
        refused = [
            Refusal(index, fault) for index, fault in zip(self.indexes, faults, strict=True) if fault is not None
        ]
        listed, unlisted = _list_more(self.refusals, refused, most)
        return Batch(
            _pick(self.lines, good),
            _pick(self.slicing, good),
            _pick(self.keys, good),
            listed,
            self.unlisted + unlisted,
            _pick(self.indexes, good),
        )


class Decoded(msgspec.Struct, frozen=True):
    """Checked records, each with its index in the request; column ``n`` is their attribute ``attribute(n)``."""

    records: list[Any]
    indexes: Sequence[int]
    refusals: list[Refusal]
    unlisted: int = 0

    def without(self, faults: Sequence[str | None]) -> Decoded:
        """The same, but for those of the records that have a fault."""
        found = list(zip(self.records, self.indexes, faults, strict=True))
        refused = [Refusal(index, fault) for _, index, fault in found if fault]
        listed, unlisted = _list_more(self.refusals, refused, LISTED)
        return Decoded(
            [record for record, _, fault in found if not fault],
            [index for _, index, fault in found if not fault],
            listed,
            self.unlisted + unlisted,
        )


def _pick(column: Sequence[T], numbers: Sequence[int]) -> list[T]:
    return [column[number] for number in numbers]


def _list_more(known: list[Refusal], more: list[Refusal], most: int) -> tuple[list[Refusal], int]:
    """Those that are listed of all refusals of a request, and how many of the new ones are not."""
    room = max(0, most - len(known))
    return sorted([*known, *more[:room]], key=attrgetter("index")), len(more[room:])


class Binding:
    """The columns, of those by ``names``, that are ``bound`` to whoever publishes; some are ``needed``."""

    def __init__(self, names: Sequence[str], bound: Sequence[str], needed: Collection[str]) -> None:
        self._columns = [(name, attribute(names.index(name)), name in needed) for name in bound]

    def apply(self, decoded: Decoded, publisher: Callable[[int], str | None]) -> Decoded:
        """The records filled in; ``publisher`` gives by index whose one is, or None: then it must say so itself."""
        if not self._columns:
            return decoded
        faults = [
            self._fill_in(record, publisher(index))
            for record, index in zip(decoded.records, decoded.indexes, strict=True)
        ]
        return decoded.without(faults) if any(faults) else decoded

    def _fill_in(self, record: Any, publisher: str | None) -> str | None:
        """Fills a record in, or says why it is refused."""
        for name, place, needed in self._columns:
            given = getattr(record, place)
            if given is None and publisher is not None:
                setattr(record, place, publisher)
            elif given is None and needed:
                return f"field '{name}': must be present and not null"
            elif publisher is not None and given not in (None, publisher):
                return f"field {foreign(name, given, publisher)}"
        return None


class RecordDecoder:
    """Decodes publications for one dataset, sliced by columns of it, with commas between (by default the primary key).

    The columns ``bound`` are the name of whoever publishes: where a record leaves them out they are filled in, and
    one with another name is refused. Who publishes for others says them all.
    """

    def __init__(
        self,
        dataset: Dataset,
        sliced_by: str | None = None,
        *,
        bound: Sequence[str] = (),
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self._columns = [(column.name, column.type) for column in dataset.columns]
        keys = [dataset.primary_key] if dataset.primary_key else []
        self._slicing = [self._position(dataset, name) for name in slicing_columns(sliced_by or "") or keys]
        self._key = [self._position(dataset, name) for name in keys]
        needed = {self._columns[n][0] for n in (*self._slicing, *self._key)}
        self._bound = Binding([name for name, _ in self._columns], bound, needed)
        self._required = needed.difference(bound)
        self._max_record_bytes = max_record_bytes
        self._lossy = lossy(self._columns)
        record = record_type(self._columns, self._required)
        self._one = msgspec.json.Decoder(record)
        self._many: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[record])  # type: ignore[valid-type]
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        self._normalisers = [
            (attribute(number), normalise)
            for number, (_, type_) in enumerate(self._columns)
            if (normalise := normaliser(type_))
        ]

    def decode(self, body: bytes, content_type: str = "", publisher: str | None = None) -> Batch:
        """The records of a request: an object, an array of objects, or NDJSON (declared, or recognised).

        ``publisher`` is whose they are; None: of somebody who may publish for others. Raises InvalidError when the body
        as a whole cannot be read; a bad line of NDJSON is refused alone.
        """
        return self._batch(self._bound.apply(self.read(body, content_type), lambda _: publisher))

    def decode_flawless(self, records: Sequence[Raw], publishers: Sequence[str]) -> Batch | None:
        """The same of records of several, each with its own publisher; None unless all of them are good."""
        body = join_records(records)
        decoded = None if self._lossy and self._lossy(body) else self._all_at_once(body, lined=False)
        batch = self._batch(self._bound.apply(decoded, publishers.__getitem__)) if decoded else None
        return None if batch is None or batch.refusals else batch

    def _batch(self, decoded: Decoded) -> Batch:
        lines = list(map(self._encode, decoded.records))
        if lines and max(map(len, lines)) > self._max_record_bytes:
            decoded = self._without_oversized(decoded, lines)
            lines = list(map(self._encode, decoded.records))
        slicing, keys = self._values(decoded, self._slicing), self._values(decoded, self._key)
        return Batch(lines, slicing, keys, decoded.refusals, decoded.unlisted, decoded.indexes)

    def read(self, body: bytes, content_type: str = "") -> Decoded:
        """As :meth:`decode`, but gives the records themselves, of any size."""
        body = body.removeprefix(_BYTE_ORDER_MARK).strip()
        if not body:
            raise InvalidError("the body is empty; send a JSON object, an array of objects, or NDJSON")
        lined = content_type.partition(";")[0].strip().lower() in _LINES_TYPES or _looks_lined(body)
        decoded = None if self._lossy and self._lossy(body) else self._all_at_once(body, lined)
        return decoded or self._one_by_one(_pieces(body, lined))

    def _all_at_once(self, body: bytes, lined: bool) -> Decoded | None:
        """All records, or None when there is one that is not good."""
        try:
            records = self._whole(body, lined)
        except (*UNDECODABLE, ValueError):
            return None
        return Decoded(records, range(len(records)), [])

    def _whole(self, body: bytes, lined: bool) -> list[Any]:
        if lined:
            records = self._one.decode_lines(body)
            # decode_lines takes any white space between records; here a record is a line.
            if len(records) != body.count(b"\n") + 1:
                raise ValueError("not one record per line")
        elif body.startswith(b"["):
            records = self._many.decode(body)
        else:
            records = [self._one.decode(body)]
        self._normalise(records)
        return records

    def _one_by_one(self, pieces: Iterable[bytes | Raw]) -> Decoded:
        records, indexes = list[Any](), list[int]()
        refusals, unlisted = list[Refusal](), 0
        for index, piece in enumerate(pieces):
            try:
                record = self._one.decode(piece)
                self._normalise([record])
                reason = self._inexact(piece)
            except (*UNDECODABLE, ValueError):
                reason = refusal(piece, self._columns, self._required) if len(refusals) < LISTED else _UNLISTED
            if reason is None:
                records.append(record)
                indexes.append(index)
            elif len(refusals) < LISTED:
                refusals.append(Refusal(index, reason))
            else:
                unlisted += 1
        return Decoded(records, indexes, refusals, unlisted)

    def _inexact(self, piece: bytes | Raw) -> str | None:
        return inexact(piece, self._columns) if self._lossy and self._lossy(bytes(memoryview(piece))) else None

    def _normalise(self, records: list[Any]) -> None:
        for name, normalise in self._normalisers:
            for record in records:
                value = getattr(record, name)
                if value is not None:
                    normal = normalise(value)
                    if normal is not value:
                        setattr(record, name, normal)

    def _without_oversized(self, decoded: Decoded, lines: list[bytes]) -> Decoded:
        limit = self._max_record_bytes
        said = "record of {} bytes; at most {} are taken"
        return decoded.without([said.format(len(line), limit) if len(line) > limit else None for line in lines])

    @staticmethod
    def _values(decoded: Decoded, positions: Sequence[int]) -> list[Any]:
        if not positions:
            return [None] * len(decoded.records)
        return list(map(attrgetter(*map(attribute, positions)), decoded.records))

    @staticmethod
    def _position(dataset: Dataset, name: str) -> int:
        column = dataset.column(name)
        if column is None:
            hint = names.suggestion(name, [known.name for known in dataset.columns])
            raise InvalidError(f"dataset {dataset.name} has no column '{name}'{hint}")
        return dataset.columns.index(column)


def count_records(body: bytes, enough: int = 0) -> int:
    """How many records a body has, whatever they are; a body that cannot be read at all counts as one.

    Where there are certainly no more than ``enough``, they are not counted, and it is some number up to that.
    """
    most = max(body.count(b","), body.count(b"\n")) + 1
    if most <= enough:
        return most
    body = body.removeprefix(_BYTE_ORDER_MARK).strip()
    try:
        return len(_pieces(body, _looks_lined(body)))
    except InvalidError:
        return 1


def join_records(records: Iterable[Raw]) -> bytes:
    """The body of a request with these records."""
    return b"[" + b",".join(map(bytes, records)) + b"]"


def _looks_lined(body: bytes) -> bool:
    """Whether the first of several lines is an object by itself, as in NDJSON and never in one spread-out object."""
    first, _, rest = body.partition(b"\n")
    if not rest or not first.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(first, type=Raw)
    except UNDECODABLE:
        return False
    return True


def _pieces(body: bytes, lined: bool) -> Sequence[bytes | Raw]:
    """The text of each record; a body that is not JSON is refused as a whole, unless its lines stand for themselves."""
    if lined:
        return [stripped for line in body.split(b"\n") if (stripped := line.strip())]
    try:
        if body.startswith(b"["):
            return msgspec.json.decode(body, type=list[Raw])
        msgspec.json.decode(body, type=Raw)
    except UNDECODABLE as error:
        raise InvalidError(f"the body is {describe_undecodable(error)}") from None
    return [body]
