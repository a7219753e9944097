"""What brokers pass on to a feed: shares of several subscribers, each judged by the feed's terms."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tocsin.errors import ForbiddenError, InvalidError
from tocsin.model.messages import Refusal, Share
from tocsin.model.terms import Asker, admit
from tocsin.schema.definitions import Feed
from tocsin.schema.records import Batch, RecordDecoder, join_records
from tocsin.schema.refusals import UNDECODABLE, describe_undecodable

_SHARES: Final = msgspec.json.Decoder(list[Share])


class DecodedShares(msgspec.Struct, frozen=True):
    """What shares brought: all good records in ``batch``, whose refusals count through all shares, and by the number of
    a share why it was ``denied``, or how many of its refusals are not listed."""

    batch: Batch
    denied: dict[int, str]
    unlisted: dict[int, int]


def decode_shares(decoder: RecordDecoder, feed: Feed, body: bytes) -> DecodedShares:
    """The records of those who may publish to ``feed``, filled in. Raises InvalidError when the body cannot be read."""
    shares = _read(body)
    denied = _find_denied(feed, shares)
    admitted = [share for number, share in enumerate(shares) if number not in denied and share.records]
    records = [record for share in admitted for record in share.records]
    flawless = decoder.decode_flawless(records, [share.subscriber for share in admitted for _ in share.records])
    if flawless is None:
        return _one_by_one(decoder, shares, denied)
    return DecodedShares(replace(flawless, indexes=_places(shares, denied)), denied, {})


def _one_by_one(decoder: RecordDecoder, shares: list[Share], denied: dict[int, str]) -> DecodedShares:
    """Each share by itself, so that what is wrong with one is no other's business."""
    whole, unlisted, first = Batch([], [], [], []), dict[int, int](), 0
    indexes = list[int]()
    for number, share in enumerate(shares):
        if number not in denied and share.records:
            batch = _decode(decoder, share)
            for mine, all_ in zip(_columns(batch), _columns(whole), strict=True):
                all_ += mine
            indexes += (first + index for index in batch.indexes)
            whole.refusals.extend(replace(refusal, index=first + refusal.index) for refusal in batch.refusals)
            unlisted |= {number: batch.unlisted} if batch.unlisted else {}
        first += len(share.records)
    return DecodedShares(replace(whole, indexes=indexes), denied, unlisted)


def _places(shares: list[Share], denied: dict[int, str]) -> list[int]:
    """Which records are of shares that are not denied, counted through all shares."""
    owners = (number for number, share in enumerate(shares) for _ in share.records)
    return [index for index, number in enumerate(owners) if number not in denied]


def _decode(decoder: RecordDecoder, share: Share) -> Batch:
    try:
        return decoder.decode(join_records(share.records), "application/json", share.subscriber)
    except InvalidError as error:
        return Batch([], [], [], [Refusal(0, str(error))], len(share.records) - 1)


def _columns(batch: Batch) -> tuple[list[Any], ...]:
    return batch.lines, batch.slicing, batch.keys


def _read(body: bytes) -> list[Share]:
    try:
        return _SHARES.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidError(f"these are no shares: {error}") from None
    except UNDECODABLE as error:
        raise InvalidError(f"the body is {describe_undecodable(error)}") from None


def _find_denied(feed: Feed, shares: list[Share]) -> dict[int, str]:
    denied: dict[int, str] = {}
    for number, share in enumerate(shares):
        try:
            admit(feed.terms, Asker(share.subscriber, share.groups), f"feed {feed.name}")
        except ForbiddenError as error:
            denied[number] = str(error)
    return denied
