"""The settings of a broker."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tocsin.broker.limits import BrokerLimits
from tocsin.settings.section import Origins, Port, Seconds, Section, Size, TlsCertificate, TlsKey

CachePolicy = Literal["least-recently-used", "least-subscribed", "time-to-live"]
_LIMITS = BrokerLimits()


class BrokerSettings(Section, frozen=True, kw_only=True):
    """A broker: where it listens, whom it serves, and what it allows."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z",
            examples=["broker-1", "north"],
            description="The broker's name, which no other broker has.",
        ),
    ] = "broker-1"
    host: Annotated[str, Meta(min_length=1, description="The address to listen on; 0.0.0.0 for all of them.")] = (
        "127.0.0.1"
    )
    port: Annotated[Port, Meta(description="The port to listen on; 0 takes any free one.")] = 8701
    url: Annotated[
        str,
        Meta(
            pattern=r"^((ws|wss)://[^\s]+)?\Z",
            examples=["", "wss://north.example.org/subscriber"],
            description="Where subscribers reach the broker, if not at its host and port.",
        ),
    ] = ""
    coordinator: Annotated[str, Meta(min_length=1, description="The coordinator's URL.")] = "http://127.0.0.1:8700"
    token: Annotated[str, Meta(description="The broker's token for the coordinator: `tocsin token sign`.")] = ""
    data: Annotated[
        str,
        Meta(
            pattern=r"^\s*[^\s,]",
            examples=["http://127.0.0.1:8800", "http://data-1:8800,http://data-2:8800"],
            description="The data cluster's URL; several, with commas between them, where others stand by.",
        ),
    ] = "http://127.0.0.1:8800"
    data_token: Annotated[str, Meta(description="The broker's token for the data cluster: `tocsin token add`.")] = ""
    capacity: Annotated[
        float, Meta(gt=0, le=1_000_000, description="How much it can carry, relative to other brokers.")
    ] = 1.0
    location: Annotated[
        list[float],
        Meta(max_length=2, description="Where it is, x and y, so that subscribers near it are placed on it."),
    ] = msgspec.field(default_factory=list)
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    origins: Origins = msgspec.field(default_factory=list)
    connections: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description=(
                "Connections of subscribers; one more takes the place of who has not logged in, or is refused with "
                "status 503."
            ),
        ),
    ] = 16_000
    ping_seconds: Annotated[
        Seconds,
        Meta(description="A connection silent for so long is sent a ping, and ended when it is silent as long again."),
    ] = 20.0
    login_seconds: Annotated[Seconds, Meta(description="A connection that has not logged in by then is closed.")] = (
        _LIMITS.login_seconds
    )
    message_bytes: Annotated[Size, Meta(description="A larger message closes its connection.")] = _LIMITS.message_bytes
    messages_per_second: Annotated[
        float, Meta(gt=0, le=1_000_000, description="Messages a subscriber may send for long.")
    ] = _LIMITS.messages_per_second
    message_burst: Annotated[float, Meta(ge=1, le=1_000_000, description="Messages a subscriber may send at once.")] = (
        _LIMITS.message_burst
    )
    bytes_per_second: Annotated[
        float,
        Meta(
            ge=65_536,
            le=1_000_000_000_000.0,
            description=(
                "Bytes a subscriber may send in a second for long, and twice as many at once; who sends more is read "
                "more slowly."
            ),
        ),
    ] = _LIMITS.bytes_per_second
    subscriptions: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Subscriptions that one subscriber may have.")
    ] = _LIMITS.subscriptions
    parameter_bytes: Annotated[
        Size, Meta(description="What the parameters of one subscription may have at most, as JSON.")
    ] = _LIMITS.parameter_bytes
    waiting_bytes: Annotated[
        Size, Meta(description="With more than this waiting for it, a connection is slow: it catches up later.")
    ] = _LIMITS.waiting_bytes
    request_seconds: Annotated[
        Seconds, Meta(description="What data cluster or coordinator have not answered by then is refused.")
    ] = _LIMITS.request_seconds
    linger_seconds: Annotated[
        Seconds, Meta(description="How long a BE subscription that nobody wants any more is held.")
    ] = _LIMITS.linger_seconds
    cache_bytes: Annotated[int, Meta(ge=0, description="Results kept for those who come back; 0 keeps none.")] = (
        _LIMITS.cache_bytes
    )
    cache_policy: Annotated[CachePolicy, Meta(description="Which results leave the cache when it is full.")] = (
        "least-recently-used"
    )
    cache_seconds: Annotated[
        Seconds, Meta(description="How long results stay in the cache, with the policy time-to-live.")
    ] = 300.0
    report_seconds: Annotated[Seconds, Meta(description="How often the coordinator is told of load and presence.")] = (
        _LIMITS.report_seconds
    )
    rate_seconds: Annotated[Seconds, Meta(description="The span of the load's moving averages.")] = _LIMITS.rate_seconds
    publish_seconds: Annotated[
        Seconds, Meta(description="How long a publication waits for others to the same feed.")
    ] = _LIMITS.publish_seconds
