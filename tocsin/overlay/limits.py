"""What an overlay's brokers allow, how often they do what they do again and again, and how long they wait."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.content.filter import AT_ONCE

FORGETTING: Final = 60
"""How often it is looked in that time whether there are publishers to be forgotten."""
FORGET_SECONDS: Final = 600.0
"""After which time without a word a broker is forgotten: they come and go, perhaps under another name each time."""


class OverlayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All bounds of the cores. Times are in seconds."""

    replay_publications: int = 10_000
    """How many publications a head keeps for those who come back."""
    replay_bytes: int = 67_108_864
    """How many bytes of them at most, as they are sent, if that is more than one."""
    publishers: int = 100_000
    """How many publishers a head remembers; their drivers refuse more."""
    publishers_each: int = 1000
    """How many of these the bearer of a signed token may have."""
    publisher_seconds: float = 3600.0
    """How long a publisher is remembered that is not connected."""
    mark_seconds: float = 1.0
    """How often a head says how far its publications go, if there are new ones."""
    cursor_lag: int = 1000
    """By how many publications a subscriber's cursor may be behind before it is told, if nothing matches."""
    linger_seconds: float = 30.0
    """For how long neighbours go on to be asked for what somebody's filter has come to cover; up to twice that, as it
    is looked at so often."""
    at_once: int = AT_ONCE
    """How many alternatives of filters are looked up at once, when that is found or much is to be asked for anew."""
    fetch_publications: int = 1000
    """How many publications a head looks through for a piece of what somebody has missed."""
    fetch_bytes: int = 262_144
    """How many bytes of publications such a piece has at most, if it has more than one."""
    fetches: int = 8
    """How many pieces may be on their way to an edge before it asks for another."""
    answer_seconds: float = 5.0
    """How long a piece counts as on its way."""
    gather_seconds: float = 0.02
    """How long whoever is ready for the next piece waits for others who are about as far."""
    refetch_seconds: float = 20.0
    """When heads are asked again that have not answered."""
    refetches: int = 5
    """How often, before it is waited for a way to them."""
    ask_bytes: int = 262_144
    """How many bytes of filters and cursors heads are asked with at once, if they are more than one subscriber's. Each
    further alternative of a filter counts as a hundred more."""
    rate_seconds: float = 30.0
    """The span of the moving averages of incoming publications and outgoing bytes."""
    report_seconds: float = 5.0
    """How often a load message is published."""
    silent_seconds: float = 20.0
    """After which time without a load message a neighbour does not count."""
    detect_seconds: float = 5.0
    """How often the detection runs."""
    request_seconds: float = 5.0
    """How long a broker waits for the answer to a request for a session."""
    migration_seconds: float = 0.5
    """How long a migration may take for each subscriber."""
    migrating: int = 2000
    """For how many subscribers at most an acceptor waits, whatever the offloader says."""
    arriving_seconds: float = 10.0
    """How long an acceptor waits while nobody comes of those who are to."""
    stayed_seconds: float = 300.0
    """After which time somebody is sent to an edge again who was sent there and did not go."""
    leaving_seconds: float = 5.0
    """How long a subscriber that migrates waits at most for what is queued at the broker it leaves. What comes later
    has been sent by the other one: it began where the subscriber was."""
    grace_seconds: float = 5.0
    """What is added to every time that another broker has, for the messages in between."""
    global_seconds: float = 3600.0
    """When a session between clusters ends that has not come to balance."""
