"""The coordinator's settings: how long it waits, and how fast it moves subscribers."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.coordination import AWAY_SECONDS


@dataclass(frozen=True)
class CoordinatorLimits:
    """Times are in seconds.

    Args:
        grace: a broker whose connection is lost and that is not back within this is dead.
        silence: a connected broker that says nothing for so long is dead, so it must say something more often.
        returning: how long brokers have to come back after the coordinator itself was started.
        preparing: how long a destination may take to get ready.
        preparing_bytes: how much of such requests a broker is sent before it has answered.
        arriving: how long a subscriber may take to come to its destination before it stays where it was.
        retry: the wait before another try to place somebody whom a broker could not take.
        presence: whoever has no connection for so long weighs nothing, until it is back.
        expiry: whoever has not come for so long is removed; 0: nobody is.
        interval: the time between two looks at the loads.
        in_flight: how many subscribers are moved at the same time; whoever asks for a broker is not kept waiting by it.
        per_second: how many moves of a plan begin in a second.
        token_life: how long a token is valid.
        unstored: with more changes than this that the store has not taken yet, what would make more is refused as busy.
    """

    grace: float = 2.0
    silence: float = 3.0
    returning: float = 10.0
    preparing: float = 10.0
    preparing_bytes: int = 1 << 20
    arriving: float = 10.0
    retry: float = 1.0
    presence: float = AWAY_SECONDS
    expiry: float = 0.0
    interval: float = 5.0
    in_flight: int = 100
    per_second: float = 200.0
    token_life: float = 30 * 86_400.0
    unstored: int = 100_000
