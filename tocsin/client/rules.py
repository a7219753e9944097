"""How patient, how chatty and how large a subscriber's connection is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Bounds in seconds, notes and bytes; the defaults suit a program on a mobile network."""

    ask_seconds: float = 10.0
    """A coordinator that has not answered by then has failed."""
    login_seconds: float = 10.0
    """From opening a connection to being welcomed on it."""
    first_wait: float = 0.25
    """Wait before the first reconnection; doubled at each failure, and up to halved at random."""
    longest_wait: float = 30.0
    flood_wait: float = 30.0
    """Least wait after a broker has complained of too many messages."""
    steady_seconds: float = 10.0
    """A connection that served this long is no failure when it ends."""
    ping_seconds: float = 10.0
    pong_seconds: float = 10.0
    """A connection on which nothing came for this long is pinged, and given up when nothing comes for so long then."""
    ack_seconds: float = 0.5
    ack_notes: int = 100
    """An acknowledgement goes out when this many notes were taken, or the first of them this long ago."""
    backlog_notes: int = 1000
    backlog_bytes: int = 4 << 20
    """Most of one subscription that waits to be taken; the rest is fetched later."""
    renew_seconds: float = 1.0
    """Shortest time between two logins that fetch what did not fit."""
    message_bytes: int = 256 << 10
    """Brokers take no larger messages; a subscription that needs one is refused."""
    window: int = 16
    """Requests of one kind that wait for their answer at the same time."""
    retry_seconds: float = 1.0
    """Wait before a request is repeated that could not be acted on, where the broker does not say."""
    batch_seconds: float = 0.05
    batch_records: int = 500
    batch_bytes: int = 128 << 10
    """Records go out at once when nothing is under way and nothing went for so long; else when the first has waited
    this long, or so many, or so much, have come together."""
    kept_bytes: int = 8 << 20
    """Most that is kept of records without an answer; beyond, publishing is refused as busy."""
