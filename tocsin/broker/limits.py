"""What a broker allows, and how long it waits: the bounds that keep one subscriber from hurting the others."""

from __future__ import annotations

import msgspec

from tocsin.model.bounds import PARAMETER_BYTES

KIB, MIB = 1 << 10, 1 << 20


class BrokerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All bounds of the broker's core. Times are in seconds."""

    login_seconds: float = 10.0
    """A connection that has not logged in by then is closed."""
    message_bytes: int = 256 * KIB
    """A larger message closes its connection."""
    messages_per_second: float = 100.0
    """What a subscriber may send for long."""
    message_burst: float = 500.0
    """What a subscriber may send at once."""
    bytes_per_second: float = 1.0 * MIB
    """What a subscriber may send for long; who sends more is read more slowly."""
    subscriptions: int = 1000
    """Subscriptions of one subscriber, those being made included."""
    parameter_bytes: int = PARAMETER_BYTES
    """What the parameters of one subscription may have at most, as JSON."""
    waiting_bytes: int = MIB
    """With more than this waiting, a connection is slow; with as much again in answers it is closed."""
    request_seconds: float = 10.0
    """A request that data cluster or coordinator has not answered by then is refused as unavailable."""
    linger_seconds: float = 10.0
    """How long a BE subscription that nobody wants any more is held."""
    stranger_seconds: float = 300.0
    """How long a BE subscription stays attached that nobody here is known to want, as after a crash."""
    missing_seconds: float = 5.0
    """How often the data cluster is asked for a channel that was there before, and that it does not know."""
    retry_seconds: float = 1.0
    """After which time a failed pull is tried again, unless the answer says."""
    pull_executions: int = 1000
    """Executions that one pull spans at most."""
    pull_bytes: int = 4 * MIB
    """Bytes of results after which a pull begins no further execution."""
    pull_ids: int = 10_000
    """With more BE subscriptions than this, a pull for all who are current names none, and so means all."""
    pull_backends: int = 256
    """BE subscriptions that one pull for those behind asks for at most."""
    cache_bytes: int = 64 * MIB
    """Results kept for those who come back; 0 keeps none."""
    acknowledge_seconds: float = 1.0
    """How often the coordinator is told how far subscribers have acknowledged."""
    report_seconds: float = 2.0
    """How often the coordinator is told of load and presence."""
    rate_seconds: float = 60.0
    """The span of the moving averages."""
    publish_seconds: float = 0.05
    """How long a publication waits for others to the same feed."""
    publish_bytes: int = 256 * KIB
    """A batch this large does not wait."""
    publishing_bytes: int = 16 * MIB
    """With more than this not yet answered by the data cluster, publications are refused as busy."""
