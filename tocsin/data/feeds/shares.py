"""What brokers pass on to a feed: shares of several subscribers, each judged by the feed's terms."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tocsin.errors import ForbiddenError, InvalidError
from tocsin.model.definitions import Feed
from tocsin.model.messages import Share
from tocsin.model.records import Batch, RecordDecoder
from tocsin.model.refusals import UNDECODABLE, malformed
from tocsin.model.terms import Asker, admit

_SHARES: Final = msgspec.json.Decoder(list[Share])


def decode_shares(decoder: RecordDecoder, feed: Feed, body: bytes, denied: dict[int, str]) -> Batch:
    """The records of those who may publish to ``feed``, filled in; why the others may not goes into ``denied``.

    The indexes of refused records count through all shares. Raises InvalidError when the body cannot be read.
    """
    shares = _read(body)
    denied.update(_denied(feed, shares))
    indexes, first = list[int](), 0
    for number, share in enumerate(shares):
        last = first + len(share.records)
        indexes += range(first, last) if number not in denied else ()
        first = last
    admitted = [share for number, share in enumerate(shares) if number not in denied]
    records = [record for share in admitted for record in share.records]
    batch = decoder.decode_shares(records, [share.subscriber for share in admitted for _ in share.records])
    return replace(batch, refusals=[replace(refusal, index=indexes[refusal.index]) for refusal in batch.refusals])


def _read(body: bytes) -> list[Share]:
    try:
        return _SHARES.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidError(f"these are no shares: {error}") from None
    except UNDECODABLE as error:
        raise InvalidError(f"the body is {malformed(error)}") from None


def _denied(feed: Feed, shares: list[Share]) -> dict[int, str]:
    denied: dict[int, str] = {}
    for number, share in enumerate(shares):
        try:
            admit(feed.terms, Asker(share.subscriber, share.groups), f"feed {feed.name}")
        except ForbiddenError as error:
            denied[number] = str(error)
    return denied
