"""Shares of several subscribers in one request: what is wrong with one is no other's business."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tocsin.data.feeds.shares import decode_shares
from tocsin.errors import InvalidError
from tocsin.model.messages import LISTED
from tocsin.model.terms import Terms
from tocsin.schema.definitions import Column, Dataset, DatasetKind, Feed
from tocsin.schema.records import RecordDecoder
from tocsin.schema.types import parse_type

COLUMNS = (Column("id", parse_type("STRING")), Column("severity", parse_type("INT")))
DECODER = RecordDecoder(Dataset("Reports", DatasetKind.APPEND, COLUMNS, "id"))
FEED = Feed("reports", "Reports", "id", 4, terms=Terms())


def body(**shares: list[Any]) -> bytes:
    return msgspec.json.encode([{"subscriber": name, "records": records} for name, records in shares.items()])


def test_good_records_of_all_are_taken_together() -> None:
    shares = decode_shares(DECODER, FEED, body(ann=[{"id": "1"}], bob=[{"id": "2"}, {"id": "3"}]))
    assert [msgspec.json.decode(line)["id"] for line in shares.batch.lines] == ["1", "2", "3"]
    assert (shares.batch.refusals, shares.unlisted) == ([], {})


def test_somebodys_thousands_of_bad_records_leave_room_for_others_refusals() -> None:
    shares = decode_shares(DECODER, FEED, body(ann=[1] * 5000, eve=[], bob=[{"id": "2"}, {"id": 3}]))
    assert len(shares.batch.lines) == 1
    assert [refused.index for refused in shares.batch.refusals] == [*range(LISTED), 5001]
    assert shares.unlisted == {0: 5000 - LISTED}


def test_no_shares_at_all_are_none() -> None:
    assert decode_shares(DECODER, FEED, b"[]").batch.lines == []
    assert decode_shares(DECODER, FEED, body(ann=[])).batch.lines == []


def test_what_is_no_share_is_refused() -> None:
    for text in (b"{}", b'[{"records":[]}]', b'[{"subscriber":"ann","records":[' + b"[" * 5000):
        with pytest.raises(InvalidError):
            decode_shares(DECODER, FEED, text)
