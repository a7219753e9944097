"""The settings of a broker of the content-based overlay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from tocsin.errors import SettingsError
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.tuning import Band, Trigger, Tuning
from tocsin.settings.section import GIB, KIB, MIB, Port, Seconds, Section, Size, TlsCertificate, TlsKey

NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
_LIMITS: Final = OverlayLimits()
_TUNING: Final = Tuning()
_Count = Annotated[int, Meta(ge=1, le=100_000_000)]
_Ratio = Annotated[float, Meta(gt=0, le=1)]
_Difference = Annotated[float, Meta(ge=0, le=10)]


class OverlaySettings(Section, frozen=True, kw_only=True):
    """A head or an edge of the content-based overlay: where it listens, whom it links to, and what it allows."""

    name: Annotated[
        str,
        Meta(
            pattern=rf"^{NAME}\Z",
            examples=["head-1", "north"],
            description="The broker's name, which no other broker of the overlay has.",
        ),
    ] = "head-1"
    host: Annotated[str, Meta(min_length=1, description="The address to listen on; 0.0.0.0 for all of them.")] = (
        "127.0.0.1"
    )
    port: Annotated[Port, Meta(description="The port to listen on; 0 takes any free one.")] = 8710
    url: Annotated[
        str,
        Meta(
            pattern=r"^((ws|wss)://[^\s]+)?\Z",
            examples=["", "wss://north.example.org"],
            description="Where clients and other brokers reach it, if not at its host and port.",
        ),
    ] = ""
    head: Annotated[
        str,
        Meta(
            pattern=r"^((ws|wss|http|https)://[^\s]+)?\Z",
            examples=["", "ws://127.0.0.1:8710"],
            description=(
                "The head that it links to: an edge's own; for a head, the next one towards the root of the tree that "
                "heads form, and empty for the root."
            ),
        ),
    ] = ""
    token: Annotated[
        str,
        Meta(
            description=(
                "What brokers of the overlay show each other, the same for all; it may be empty only where no other "
                "machine can connect."
            )
        ),
    ] = ""
    client_token: Annotated[
        str, Meta(description="What publishers and subscribers must show; empty lets everybody in.")
    ] = ""
    public_keys: Annotated[
        list[Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+:[A-Za-z0-9_-]{43}\Z")]],
        Meta(
            examples=["6n2mPq0w:Xr3uJwA0cZ0m1kqk2F3bX6jz5vV8m0b2nq9s7d4f1gA"],
            description=(
                "Keys of a coordinator, as 'tocsin token keys' prints them. If there are any, publishers and "
                "subscribers show tokens that were signed with one of them, in place of the clients' token, and have "
                "the names that these say."
            ),
        ),
    ] = msgspec.field(default_factory=list)
    directory: Annotated[
        Path, Meta(description="Where a head keeps its replay log; created when missing. Each head has its own.")
    ] = Path("tocsin-overlay")
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    origins: Annotated[
        list[str],
        Meta(
            examples=["https://example.org"],
            description=(
                "The web pages that may connect, by their origin; empty for all where clients show tokens, and for "
                "those of this machine where they need none. Other programs always may."
            ),
        ),
    ] = msgspec.field(default_factory=list)
    connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Publishers or subscribers that may be connected at the same time.")
    ] = 10_000
    connections_each: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description=(
                "Of these, how many the bearer of one signed token may have: one for each subscription or publisher. "
                "Without overlay.public_keys nobody can be told from others, and only overlay.connections counts."
            ),
        ),
    ] = 1000
    publishers: Annotated[
        _Count, Meta(description="Publishers that a head remembers, by their names; more are refused.")
    ] = _LIMITS.publishers
    publisher_seconds: Annotated[
        Seconds,
        Meta(
            description=(
                "How long a head remembers a publisher that is not connected: coming back in that time, it publishes "
                "nothing twice."
            )
        ),
    ] = _LIMITS.publisher_seconds
    publish_rate: Annotated[
        float,
        Meta(
            gt=0,
            le=1e9,
            description=(
                "Publications per second that a head takes from the bearer of one signed token, or without "
                "overlay.public_keys on one connection; whoever publishes more is slowed down."
            ),
        ),
    ] = 5_000.0
    publish_bytes: Annotated[
        float, Meta(ge=KIB, le=1e15, description="The same in bytes per second, as they are sent.")
    ] = 8.0 * MIB
    message_bytes: Annotated[Size, Meta(description="A larger message of a client closes its connection.")] = 64 * KIB
    waiting_bytes: Annotated[
        Size,
        Meta(
            description=(
                "A subscriber that leaves more than this unread is cut off after it; it comes back for the rest by "
                "itself."
            )
        ),
    ] = 4 * MIB
    waiting_bytes_each: Annotated[
        Size,
        Meta(
            description=(
                "What the bearer of one signed token may leave unread on all its connections together; then those are "
                "cut off that have most."
            )
        ),
    ] = 64 * MIB
    link_bytes: Annotated[
        Size, Meta(description="A broker that leaves more than this unread is cut off, and links again.")
    ] = 64 * MIB
    unstored: Annotated[
        _Count, Meta(description="With so many publications not on a head's disk yet, publishers wait.")
    ] = 10_000
    unstored_bytes: Annotated[
        Size, Meta(description="The same in bytes; in memory they may take several times that.")
    ] = 32 * MIB
    replay_publications: Annotated[
        _Count, Meta(description="How many publications a head keeps for those who come back.")
    ] = _LIMITS.replay_publications
    replay_bytes: Annotated[
        Size,
        Meta(
            description=(
                "How many bytes of these it keeps at most, as they are sent; in memory they may take several times "
                "that."
            )
        ),
    ] = _LIMITS.replay_bytes
    linger_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description=(
                "For how long, or up to twice that, neighbours go on to be asked for what a new filter covers, so that "
                "whoever subscribes to everything for a moment has not all else asked for anew; 0 asks for it no more "
                "at once."
            ),
        ),
    ] = _LIMITS.linger_seconds
    fetch_publications: Annotated[
        _Count,
        Meta(description="How many publications a head looks through for a piece of what somebody has missed."),
    ] = _LIMITS.fetch_publications
    fetch_bytes: Annotated[
        Size,
        Meta(
            description=(
                "How many bytes such a piece has at most, if it is more than one publication; leave it well below "
                "overlay.waiting_bytes."
            )
        ),
    ] = _LIMITS.fetch_bytes
    fetches: Annotated[
        _Count,
        Meta(
            description=(
                "How many such pieces may be on their way to an edge before it asks for more: with what they have at "
                "most, so much of its link's queue is theirs."
            )
        ),
    ] = _LIMITS.fetches
    bandwidth: Annotated[
        float,
        Meta(
            gt=0,
            le=1e15,
            description=(
                "Bytes per second that an edge can send: its O_r is a part of this. With overlay.public_keys, when "
                "more is to be sent every bearer of a token has the same share of it, whatever connections it has."
            ),
        ),
    ] = 12_500_000.0
    memory_bytes: Annotated[Size, Meta(description="The memory that an edge may use, by which it is overloaded.")] = (
        2 * GIB
    )
    mark_seconds: Annotated[
        Seconds, Meta(description="How often a head says how far its publications go, if there are new ones.")
    ] = _LIMITS.mark_seconds
    rate_seconds: Annotated[Seconds, Meta(description="The span of the load's moving averages.")] = _LIMITS.rate_seconds
    report_seconds: Annotated[Seconds, Meta(description="How often a load message is published.")] = (
        _LIMITS.report_seconds
    )
    detect_seconds: Annotated[Seconds, Meta(description="How often it is found out whether somebody is to move.")] = (
        _LIMITS.detect_seconds
    )
    silent_seconds: Annotated[
        Seconds, Meta(description="After which time without a load message a neighbour does not count.")
    ] = _LIMITS.silent_seconds
    refetch_seconds: Annotated[Seconds, Meta(description="When heads are asked again that have not answered.")] = (
        _LIMITS.refetch_seconds
    )
    stabilize_seconds: Annotated[
        Seconds, Meta(description="How long a broker takes no part in balancing after a session, at least.")
    ] = _TUNING.stabilize_seconds
    stabilize_difference: Annotated[
        _Difference,
        Meta(
            description=(
                "By how much no metric may have changed between two runs of the detection, for a broker to be stable; "
                "and within which nothing is tried again that was in vain."
            )
        ),
    ] = _TUNING.stabilize_difference
    overload_lower: Annotated[
        _Ratio, Meta(description="Above this part of its input, output, CPU or memory an edge takes no more load.")
    ] = Band().lower
    overload_higher: Annotated[
        _Ratio,
        Meta(
            description="Above this part it sheds load; in between it does neither. Not below overlay.overload_lower."
        ),
    ] = Band().higher
    local_ratio: Annotated[
        _Difference, Meta(description="By how much more than another edge's an edge's ratios are when it acts.")
    ] = _TUNING.local.ratio
    local_delay: Annotated[
        _Difference,
        Meta(description="The same for matching delays, in parts of overlay.normal_delay."),
    ] = _TUNING.local.delay
    global_ratio: Annotated[
        _Difference,
        Meta(description="By how much more than another cluster's a cluster's average ratios are when it acts."),
    ] = _TUNING.between_clusters.ratio
    global_delay: Annotated[
        _Difference,
        Meta(description="The same for matching delays, in parts of overlay.normal_delay."),
    ] = _TUNING.between_clusters.delay
    normal_delay: Annotated[
        Seconds, Meta(description="A difference of matching delays counts in parts of this (N_f).")
    ] = _TUNING.normal_delay
    balanced: Annotated[
        _Difference,
        Meta(description="Two edges that differ by no more than this need exchange nothing further in a session."),
    ] = _TUNING.balanced
    report_cards: Annotated[
        _Count,
        Meta(
            description=(
                "How many choices an edge weighs at most in a session to find who is to go; one takes some dozens of "
                "microseconds, in which it does nothing else."
            )
        ),
    ] = _TUNING.report_cards
    migration_seconds: Annotated[
        Seconds, Meta(description="How long a move to another edge may take, for each subscriber of a session.")
    ] = _LIMITS.migration_seconds
    arriving_seconds: Annotated[
        Seconds,
        Meta(description="How long an edge waits in a session while nobody comes of those who were sent to it."),
    ] = _LIMITS.arriving_seconds
    stayed_seconds: Annotated[
        Seconds,
        Meta(description="After which time a subscriber is sent to an edge again that was sent there and did not go."),
    ] = _LIMITS.stayed_seconds
    leaving_seconds: Annotated[
        Seconds, Meta(description="How long a subscriber that moves waits at most for what is queued where it was.")
    ] = _LIMITS.leaving_seconds
    global_seconds: Annotated[
        Seconds, Meta(description="When a session between clusters ends that has not come to balance.")
    ] = _LIMITS.global_seconds
    samples: Annotated[int, Meta(ge=1, le=10_000, description="Publications sampled for an estimate (N).")] = (
        _TUNING.samples
    )
    sampling_seconds: Annotated[Seconds, Meta(description="After which time sampling ends with fewer (T).")] = (
        _TUNING.sampling_seconds
    )

    @property
    def limits(self) -> OverlayLimits:
        """The cores' limits; what is no setting has its default."""
        return OverlayLimits(**_given_values(self, OverlayLimits))

    @property
    def tuning(self) -> Tuning:
        """The balancer's parameters; what is no setting has its default. SettingsError, if an edge would shed load and
        take some at the same time."""
        if self.overload_higher < self.overload_lower:
            raise SettingsError(
                f"overlay.overload_higher = {self.overload_higher} is below overlay.overload_lower = "
                f"{self.overload_lower}, so that an edge would shed load that it still takes: set it to at least that"
            )
        band = Band(self.overload_lower, self.overload_higher)
        return Tuning(
            input=band,
            output=band,
            cpu=band,
            memory=band,
            local=Trigger(self.local_ratio, self.local_delay),
            between_clusters=Trigger(self.global_ratio, self.global_delay),
            **_given_values(self, Tuning),
        )


def _given_values(section: OverlaySettings, kind: type[msgspec.Struct]) -> dict[str, Any]:
    settings = msgspec.structs.asdict(section)
    return {name: settings[name] for name in kind.__struct_fields__ if name in settings}
