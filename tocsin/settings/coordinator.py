"""The settings of the coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from tocsin.balance.control.thresholds import Thresholds
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.settings.section import MIB, Connections, Origins, Port, Seconds, Section, Size, TlsCertificate, TlsKey

_LIMITS: Final = CoordinatorLimits()
DAY: Final = 86_400.0
_THRESHOLDS: Final = Thresholds.product()

Registration = Literal["operator", "open"]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(ge=0, le=1_000_000)]
Rate = Annotated[float, Meta(ge=0, le=1_000_000_000_000)]
Pause = Annotated[float, Meta(ge=0, le=1_000_000_000)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class CoordinatorSettings(Section, frozen=True, kw_only=True):
    """The coordinator: where it listens, what it keeps, and how it places and moves subscribers."""

    host: Annotated[str, Meta(min_length=1, description="The address to listen on; 0.0.0.0 for all of them.")] = (
        "127.0.0.1"
    )
    port: Annotated[Port, Meta(description="The port to listen on; 0 takes any free one.")] = 8700
    directory: Annotated[Path, Meta(description="Where its state and its address are kept; created when missing.")] = (
        Path("tocsin-coordinator")
    )
    store: Annotated[
        str,
        Meta(
            examples=["", "postgresql://tocsin@db.example.org/tocsin"],
            description="A PostgreSQL database for its state; empty for a SQLite file in the directory.",
        ),
    ] = ""
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    origins: Origins = msgspec.field(default_factory=list)
    connections: Connections = 10_000
    registration: Annotated[
        Registration,
        Meta(description="Who may register subscribers: operators, or anybody for names that are not taken."),
    ] = "operator"
    registrations_each: Annotated[
        int,
        Meta(ge=1, description="Where anybody may register: names an hour from one address. Operators have no bound."),
    ] = 100
    registrations: Annotated[
        int, Meta(ge=1, description="Where anybody may register: names an hour from all addresses together.")
    ] = 10_000
    answer_seconds: Annotated[
        Seconds, Meta(description="A call that cannot be answered for so long gets status 503.")
    ] = 30.0
    max_waiting: Annotated[
        Count, Meta(description="With so many calls waiting, more are answered with status 429.")
    ] = 10_000
    max_unstored: Annotated[
        Count,
        Meta(
            description=(
                "With more changes than this that its store has not taken yet, what would make more is refused with "
                "status 429."
            )
        ),
    ] = _LIMITS.unstored
    link_bytes: Annotated[
        Size, Meta(description="A broker that leaves more than this unread is cut off, and may connect again.")
    ] = 64 * MIB
    placement: Annotated[
        str,
        Meta(
            min_length=1,
            examples=["two-choices", "least-loaded", "nearest", "round-robin", "random"],
            description="Which broker newcomers get, and those whose broker has died.",
        ),
    ] = "two-choices"
    migration: Annotated[
        str, Meta(min_length=1, examples=["migrate", "ldm", "sdm"], description="The planner of migrations.")
    ] = "migrate"
    shuffle: Annotated[str, Meta(min_length=1, examples=["shuffle", "gsh"], description="The planner of shuffles.")] = (
        "shuffle"
    )
    alpha: Annotated[Level, Meta(description="Migrate when cov is above this.")] = _THRESHOLDS.alpha
    beta: Annotated[
        Rate,
        Meta(
            description=(
                "Migrate only when the mean load is above this, in bytes per second. 0 balances a system of any size; "
                "the paper's 300 MB/s is what its brokers handled with ease, and a smaller system would never balance."
            )
        ),
    ] = _THRESHOLDS.beta
    gamma: Annotated[Level, Meta(description="Shuffle when cov is above this.")] = _THRESHOLDS.gamma
    theta: Annotated[
        Rate, Meta(description="Shuffle only when the mean load is above this, in bytes per second; 0 as for beta.")
    ] = _THRESHOLDS.theta
    shuffle_gain: Annotated[
        float,
        Meta(
            ge=0,
            le=0.99,
            description=(
                "Shuffle only when the highest load ends by this part of it lower than with a migration, which moves "
                "far fewer; 0: also when a migration would do as well."
            ),
        ),
    ] = _THRESHOLDS.shuffle_gain
    max_over_mean: Annotated[
        Level, Meta(description="Migrate also when the highest load is above so many times the mean; 0: never.")
    ] = _THRESHOLDS.max_over_mean or 0.0
    chance: Annotated[
        Level,
        Meta(
            description=(
                "But leave alone what is below 1 + this ÷ √(subscribers of a broker): the fewer make up a load, the "
                "more it changes by chance."
            )
        ),
    ] = _THRESHOLDS.chance
    target: Annotated[
        Fraction,
        Meta(
            description=(
                "Of what the highest load may be above the mean, plans leave this part; 0: they go as low as is worth "
                "the moves."
            )
        ),
    ] = _THRESHOLDS.target or 0.0
    stale_after_seconds: Annotated[
        Pause, Meta(description="A broker that has not reported its load for longer is neither left nor come to.")
    ] = _THRESHOLDS.stale_after
    max_stale: Annotated[
        Fraction, Meta(description="No plan at all when more than this part of the brokers has not reported.")
    ] = _THRESHOLDS.max_stale
    cool_down_seconds: Annotated[
        Pause, Meta(description="No new plan to balance within this time after the last; draining does not wait.")
    ] = _THRESHOLDS.cool_down
    settle_seconds: Annotated[
        Pause, Meta(description="Whoever was moved stays for this long, unless its broker drains.")
    ] = _THRESHOLDS.settle
    max_moves: Annotated[
        int, Meta(ge=0, le=1_000_000_000, description="Move at most so many subscribers by one plan; 0: any number.")
    ] = _THRESHOLDS.max_moves or 0
    min_gain: Annotated[
        Rate, Meta(description="Leave out moves that gain less, in bytes per second; 0: leave none out.")
    ] = _THRESHOLDS.min_gain
    min_improvement: Annotated[
        float,
        Meta(
            gt=0,
            le=0.99,
            description="Refuse a plan that lowers neither the highest load nor cov by this part of it.",
        ),
    ] = _THRESHOLDS.min_improvement
    interval_seconds: Annotated[Seconds, Meta(description="The time between two looks at the loads.")] = (
        _LIMITS.interval
    )
    moves_in_flight: Annotated[Count, Meta(description="How many subscribers are moved at the same time.")] = (
        _LIMITS.in_flight
    )
    moves_per_second: Annotated[Seconds, Meta(description="How many moves of a plan begin in a second.")] = (
        _LIMITS.per_second
    )
    grace_seconds: Annotated[
        Seconds, Meta(description="A broker whose connection is lost, and that is not back within this, is dead.")
    ] = _LIMITS.grace
    silence_seconds: Annotated[
        Seconds, Meta(description="A connected broker that says nothing for so long is dead; it speaks every second.")
    ] = _LIMITS.silence
    returning_seconds: Annotated[
        Seconds, Meta(description="How long brokers have to come back after the coordinator was started.")
    ] = _LIMITS.returning
    preparing_seconds: Annotated[
        Seconds, Meta(description="How long a broker may take to get ready for a subscriber.")
    ] = _LIMITS.preparing
    arriving_seconds: Annotated[
        Seconds, Meta(description="How long a subscriber may take to come to its new broker, before it stays.")
    ] = _LIMITS.arriving
    retry_seconds: Annotated[
        Seconds, Meta(description="The wait before somebody is placed again whom a broker could not take.")
    ] = _LIMITS.retry
    presence_seconds: Annotated[
        Seconds,
        Meta(
            description=(
                "Whoever has been without a connection for so long counts as no load, and nothing is pulled for them "
                "until they are back; a reconnection within this time changes nothing."
            )
        ),
    ] = _LIMITS.presence
    expire_days: Annotated[
        float,
        Meta(
            ge=0,
            le=100_000,
            description=(
                "Subscribers who have not come for so many days are removed, with all they subscribed to; 0: never."
            ),
        ),
    ] = _LIMITS.expiry / DAY
    token_seconds: Annotated[Seconds, Meta(description="How long a token is valid.")] = _LIMITS.token_life
