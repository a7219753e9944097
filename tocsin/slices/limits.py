"""How long the head and the nodes wait, and how much they do at a time."""

from __future__ import annotations

import msgspec


class SliceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All bounds of the cores. Times are in seconds."""

    settling_seconds: float = 3.0
    """After its start, the head gives slices only to those who had them, for so long."""
    grace_seconds: float = 2.0
    """A node without a connection keeps its slices for so long."""
    silent_seconds: float = 10.0
    """A node with a connection that has said nothing for so long counts as lost."""
    stuck_seconds: float = 120.0
    """A slice of which something waits, and nothing was committed for so long, is given to another node."""
    longest_stuck_seconds: float = 3600.0
    """A node that did not get on is tried again after four times that, twice as long each time, up to this."""
    prepare_seconds: float = 10.0
    """How long a taker may prepare."""
    release_seconds: float = 10.0
    """How long a giver may take to commit what it has in hand; then it is not asked any more."""
    sessions: int = 16
    """How many sessions there may be at a time, each of two nodes that are in no other."""
    session_slices: int = 32
    """How many slices move in a session, at most; what is more moves in the next."""
    round_seconds: float = 5.0
    """How often the loads are looked at."""
    relapse_seconds: float = 1.0
    """How long a slice waits for its next owner when one has died without getting on with it; doubled each time,"""
    longest_relapse_seconds: float = 60.0
    """up to this."""
    batch_seconds: float = 0.05
    """From the beginning of a node's batch to that of the next, at least."""
    idle_seconds: float = 0.05
    """How long a node waits when there was nothing to read."""
    retry_seconds: float = 1.0
    """How long a node waits when a batch could not be processed, or did not count."""
    uncommitted: int = 2
    """How many batches of a node may wait to be committed while it goes on."""
