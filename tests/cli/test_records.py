from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.records import detect_format, lines, values


def stream(text: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(text))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
elements = st.lists(json_values, max_size=12)


@given(elements=elements, indent=st.sampled_from([None, 1]), escaped=st.booleans(), chunk=st.integers(1, 9))
def test_an_array_is_cut_into_its_elements_wherever_reading_stops(
    elements: list[object], indent: int | None, escaped: bool, chunk: int
) -> None:
    class Slow(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(chunk)

    text = json.dumps(elements, indent=indent, ensure_ascii=escaped).encode("utf-8", "replace")
    slow = Slow(io.BytesIO(text))
    assert [json.loads(record.text) for record in values(slow)] == json.loads(text)


@given(elements=elements)
def test_elements_begin_at_the_lines_they_begin_at(elements: list[object]) -> None:
    text = json.dumps(elements, indent=1)
    expected = [
        number for number, line in enumerate(text.splitlines(), 1) if line[:1] == " " and line[1:2] not in " ]}"
    ]
    assert [record.line for record in values(stream(text.encode()))] == expected


def test_a_long_array_is_not_kept_in_memory() -> None:
    text = b"[" + b",\n".join(b'{"id":%d}' % number for number in range(50_000)) + b"]"
    read = stream(text)
    found = values(read)
    assert next(found).text == b'{"id":0}'
    assert read.tell() < 200_000
    assert sum(1 for _ in found) == 49_999


def test_blank_lines_count_but_are_no_records() -> None:
    assert [tuple(record) for record in lines(stream(b"\n {} \r\n\n{}"))] == [(2, b"{}"), (4, b"{}")]


def test_the_form_is_recognised_by_how_it_begins() -> None:
    assert detect_format(stream(b' [{"id":1}]')) == "json"
    assert detect_format(stream(b'{\n "id":1}')) == "json"
    assert detect_format(stream(b'{"id":1}\n{"id":2}')) == "ndjson"
    assert detect_format(stream(b'{"id":1}')) == "ndjson"
    assert detect_format(stream(b"nonsense\n[")) == "ndjson"
    assert detect_format(stream(b"")) == "ndjson"
