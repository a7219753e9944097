"""The settings of processing nodes: those of the head, and those of a node."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tocsin.settings.section import Port, Seconds, Section
from tocsin.slices.limits import SliceLimits

_LIMITS = SliceLimits()
_CAPACITY = Meta(
    ge=0, le=1_000_000, description="How much it can do, relative to other nodes; 0: the processors it may use."
)


class NodesSettings(Section, frozen=True, kw_only=True):
    """Processing nodes, as the data cluster has them: whether they share the slices of its feeds, and its patience."""

    share: Annotated[
        bool | Literal["auto"],
        Meta(
            description="Whether `tocsin worker` may process slices of feeds, where the slice follows from the primary "
            "key of an append dataset, and executors of a Spark cluster write them. Without, all records pass through "
            "the data cluster's process. `auto`: on a Spark cluster."
        ),
    ] = "auto"
    local: Annotated[
        bool, Meta(description="Whether the data cluster is one of the nodes; without, somebody else must be.")
    ] = True
    capacity: Annotated[float, _CAPACITY] = 0.0
    elastic: Annotated[
        bool,
        Meta(
            description="Whether a worker that the others could do without is emptied, and ends with status 0. For "
            "workers that nobody starts again at once."
        ),
    ] = False
    elastic_seconds: Annotated[
        Seconds,
        Meta(description="How long there must have been too much or too little to do until a node is wanted or spare."),
    ] = 30.0
    grace_seconds: Annotated[
        Seconds, Meta(description="How long a node that has lost its connection keeps its slices.")
    ] = _LIMITS.grace_seconds
    silent_seconds: Annotated[
        Seconds, Meta(description="A node that has said nothing for so long has lost its connection.")
    ] = _LIMITS.silent_seconds
    settling_seconds: Annotated[
        Seconds, Meta(description="After a start, slices go only to who had them, for so long.")
    ] = _LIMITS.settling_seconds
    stuck_seconds: Annotated[
        Seconds,
        Meta(description="A slice of which something waits, and nothing was stored for so long, goes to another node."),
    ] = _LIMITS.stuck_seconds
    round_seconds: Annotated[Seconds, Meta(description="How often the nodes' loads are looked at.")] = (
        _LIMITS.round_seconds
    )
    matching_seconds: Annotated[
        Seconds,
        Meta(
            description="How long a node lets a batch wait, at most, for what continuous channels find in it. One "
            "that takes more than a quarter of it is executed by the data cluster, and not tried by the node for a "
            "while."
        ),
    ] = 1.0


class WorkerSettings(Section, frozen=True, kw_only=True):
    """A processing node in a process of its own, `tocsin worker`. Its Spark is that of the section `spark`."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z",
            examples=["node-1", "n1"],
            description="The node's name, which no other node has.",
        ),
    ] = "node-1"
    head: Annotated[
        str,
        Meta(
            min_length=1,
            examples=["http://127.0.0.1:8800", "https://data-1:8800,https://data-2:8800"],
            description="The data cluster's URL; several, with commas, where it may be one of them.",
        ),
    ] = "http://127.0.0.1:8800"
    token: Annotated[str, Meta(description="The node's token: `tocsin token add NAME --role node`.")] = ""
    feeds: Annotated[
        list[str], Meta(examples=["reports"], description="The feeds whose slices it takes; empty for all.")
    ] = msgspec.field(default_factory=list)
    scratch: Annotated[
        str,
        Meta(
            examples=["", "/var/tmp"],
            description="Where it makes a directory for temporary files, gone when it ends; empty for the system's.",
        ),
    ] = ""
    capacity: Annotated[float, _CAPACITY] = 0.0
    host: Annotated[str, Meta(min_length=1, description="The address on which it says how it is.")] = "127.0.0.1"
    port: Annotated[Port, Meta(description="The port for that; 0 takes any free one.")] = 0
