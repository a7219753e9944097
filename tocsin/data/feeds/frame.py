"""Frames: how records lie in a segment file, and how to find them again among damage.

A frame is a header (magic, payload length, record count, CRC-32 of all the rest) and a payload: the records joined by
newlines. The magic holds a byte that no UTF-8 text contains, so it never occurs within a payload of JSON lines: a magic
whose checksum fits is a frame, wherever in a damaged file it is found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple
from zlib import crc32

MAGIC = b"\xffTF1"
LARGEST_PAYLOAD = 2**31 - 1
DIVIDED_BYTES = 1 << 20
"""What is longer is divided: a batch ends between frames, so that one may be larger than it should by a frame."""

_FIELDS = struct.Struct("<4sII")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size


class Frame(NamedTuple):
    """A whole, valid frame, at ``start`` to ``end`` of the buffer it was found in."""

    start: int
    end: int
    records: int
    payload: bytes


class Flaw(StrEnum):
    """Why the bytes at some place are not a frame."""

    INCOMPLETE = "the frame runs past the end of the data"
    HEADER = "there is no frame header"
    CHECKSUM = "the checksum does not match"


class InvalidSpan(NamedTuple):
    """Bytes that belong to no valid frame; one that ends where the buffer ends has no valid frame after it."""

    start: int
    end: int
    flaw: Flaw


def encode(records: Sequence[bytes]) -> bytes:
    """One frame of at least one record, each a JSON line without its newline."""
    payload = b"\n".join(records)
    if not records or payload.count(b"\n") != len(records) - 1 or MAGIC in payload:
        raise ValueError("a frame takes one or more records, each one line of UTF-8 text")
    if len(payload) > LARGEST_PAYLOAD:
        raise ValueError(f"a frame takes at most {LARGEST_PAYLOAD} bytes of records, not {len(payload)}")
    fields = _FIELDS.pack(MAGIC, len(payload), len(records))
    return b"".join((fields, _CHECKSUM.pack(crc32(payload, crc32(fields))), payload))


def encode_divided(records: Sequence[bytes]) -> bytes:
    """One frame after the other: all in one, or as many as it takes that each has one record, or not more bytes than
    ``DIVIDED_BYTES``."""
    frames, taken, size = list[bytes](), list[bytes](), 0
    for record in records:
        if taken and size + len(record) >= DIVIDED_BYTES:
            frames.append(encode(taken))
            taken, size = [], 0
        taken.append(record)
        size += len(record) + 1
    return b"".join([*frames, encode(taken)])


def frame_at(data: bytes, start: int) -> Frame | None:
    """The valid frame that begins exactly at ``start``, if there is one."""
    body = start + HEADER_BYTES
    if not data.startswith(MAGIC, start) or body > len(data):
        return None
    _, length, count = _FIELDS.unpack_from(data, start)
    (checksum,) = _CHECKSUM.unpack_from(data, start + _FIELDS.size)
    if body + length > len(data):
        return None
    payload = data[body : body + length]
    if crc32(payload, crc32(data[start : start + _FIELDS.size])) != checksum:
        return None
    return Frame(start, body + length, count, payload)


def next_frame(data: bytes, start: int = 0) -> Frame | None:
    """The first valid frame that begins at ``start`` or later."""
    while (start := data.find(MAGIC, start)) >= 0:
        if frame := frame_at(data, start):
            return frame
        start += 1
    return None


def scan(data: bytes) -> Iterator[Frame | InvalidSpan]:
    """Every valid frame in order, and between them the gaps; together they cover all of ``data``."""
    position = 0
    while position < len(data):
        frame = frame_at(data, position)
        if frame is None:
            # A damaged header's length cannot be believed, so the search goes on right behind its first byte.
            frame = next_frame(data, position + 1)
            yield InvalidSpan(position, frame.start if frame else len(data), _flaw_at(data, position))
        if frame is None:
            return
        yield frame
        position = frame.end


def whole_length(data: bytes) -> int:
    """Where the last valid frame ends: what follows is a torn tail."""
    return max((item.end for item in scan(data) if isinstance(item, Frame)), default=0)


def _flaw_at(data: bytes, start: int) -> Flaw:
    header = data[start : start + HEADER_BYTES]
    if not header.startswith(MAGIC[: len(header)]):
        return Flaw.HEADER
    if len(header) < HEADER_BYTES:
        return Flaw.INCOMPLETE
    length: int = _FIELDS.unpack_from(header)[1]
    return Flaw.INCOMPLETE if start + HEADER_BYTES + length > len(data) else Flaw.CHECKSUM
