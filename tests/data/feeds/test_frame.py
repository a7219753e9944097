"""Frames hold what was put in, and damage costs no frame but the one it hits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.feeds.frame import (
    DIVIDED_BYTES,
    MAGIC,
    Flaw,
    Frame,
    InvalidSpan,
    encode,
    encode_divided,
    scan,
    whole_length,
)

# Lines as they come: text without a raw newline. The magic has no place in UTF-8.
lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40).map(str.encode)
batches = st.lists(lines, min_size=1, max_size=8)


def frames(data: bytes) -> list[Frame]:
    return [item for item in scan(data) if isinstance(item, Frame)]


def gaps(data: bytes) -> list[InvalidSpan]:
    return [item for item in scan(data) if isinstance(item, InvalidSpan)]


@given(st.lists(batches, max_size=6))
def test_what_is_encoded_is_found_again_in_order(written: list[list[bytes]]) -> None:
    found = list(scan(b"".join(map(encode, written))))
    assert [item.payload.split(b"\n") for item in found if isinstance(item, Frame)] == written
    assert [item.records for item in found if isinstance(item, Frame)] == list(map(len, written))
    assert not [item for item in found if isinstance(item, InvalidSpan)]


@given(st.lists(st.one_of(batches.map(encode), st.binary(max_size=50)), max_size=6))
def test_frames_and_gaps_together_cover_every_byte_once(parts: list[bytes]) -> None:
    data = b"".join(parts)
    position = 0
    for item in scan(data):
        assert item.start == position < item.end
        position = item.end
    assert position == len(data)


@given(batches, st.binary(min_size=1, max_size=200), batches)
def test_garbage_between_frames_hides_neither_of_them(before: list[bytes], garbage: bytes, after: list[bytes]) -> None:
    found = [frame.payload.split(b"\n") for frame in frames(encode(before) + garbage + encode(after))]
    assert found[0] == before
    assert found[-1] == after


def test_every_proper_prefix_of_a_frame_is_an_incomplete_tail() -> None:
    whole, torn = encode([b'{"id":1}']), encode([b'{"id":2}', b'{"id":3}'])
    for cut in range(1, len(torn)):
        data = whole + torn[:cut]
        assert gaps(data) == [InvalidSpan(len(whole), len(data), Flaw.INCOMPLETE)]
        assert whole_length(data) == len(whole)


def test_a_flipped_byte_costs_the_frame_it_is_in_and_no_other() -> None:
    parts = [encode([b'{"id":%d}' % n, b'{"more":%d}' % n]) for n in range(4)]
    data, size = b"".join(parts), len(parts[0])
    intact = frames(data)
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        assert frames(bytes(broken)) == [frame for number, frame in enumerate(intact) if number != at // size]
        (gap,) = gaps(bytes(broken))
        assert (gap.start, gap.end) == (at // size * size, (at // size + 1) * size)


def test_zeros_are_a_gap_without_a_header() -> None:
    frame = encode([b"{}"])
    assert list(scan(frame + bytes(4096) + frame))[1] == InvalidSpan(len(frame), len(frame) + 4096, Flaw.HEADER)


def test_a_torn_tail_is_what_has_no_valid_frame_after_it() -> None:
    frame = encode([b"{}"])
    assert whole_length(b"") == 0
    assert whole_length(bytes(10)) == 0
    assert whole_length(frame + bytes(10)) == len(frame)
    assert whole_length(frame + bytes(10) + frame) == 2 * len(frame) + 10


@pytest.mark.parametrize("records", [[], [b"a\nb"], [b"x", b"y\n"], [b"x" + MAGIC]])
def test_what_could_not_be_told_apart_when_read_is_refused(records: list[bytes]) -> None:
    with pytest.raises(ValueError, match="one line of UTF-8"):
        encode(records)


@pytest.mark.parametrize(
    "sizes",
    [
        [1],
        [600_000, 600_000],
        [1, DIVIDED_BYTES - 1, 1],
        [DIVIDED_BYTES, DIVIDED_BYTES],
        [DIVIDED_BYTES + 10, 1, 1],
        [1000] * 4000,
    ],
)
def test_many_records_are_frames_that_are_no_longer_than_one_need_be(sizes: list[int]) -> None:
    records = [b"x" * size for size in sizes]
    found = list(scan(encode_divided(records)))
    assert [line for frame in found if isinstance(frame, Frame) for line in frame.payload.split(b"\n")] == records
    assert all(
        isinstance(frame, Frame) and (frame.records == 1 or len(frame.payload) < DIVIDED_BYTES) for frame in found
    )


def test_a_few_records_are_one_frame() -> None:
    records = [b"x" * 1000] * 1000
    assert encode_divided(records) == encode(records)


def test_a_frame_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="one or more records"):
        encode_divided([])
