"""What must hold in the end, whatever happened to heads and nodes."""

from __future__ import annotations

from collections import Counter

from tocsin.simulate.slices.lake import RecordedLog
from tocsin.simulate.slices.system import SliceSystem
from tocsin.slices.messages import SliceState


def violations(system: SliceSystem) -> list[str]:
    """What does not hold, as sentences; everybody must have had the time to catch up."""
    assert isinstance(system.log, RecordedLog)
    return [*_records(system, system.log), *system.dataset.overtaken, *_owners(system), *_sessions(system)]


def _records(system: SliceSystem, log: RecordedLog) -> list[str]:
    """Every record is in the dataset once, in the order of its slice."""
    wrong = []
    stored: list[list[int]] = [[] for _ in range(log.slices)]
    for slice_, record in system.dataset.rows:
        stored[slice_].append(record)
    for slice_, records in enumerate(log.records):
        wanted = list(dict.fromkeys(records))
        if stored[slice_] == wanted:
            continue
        counts = Counter(stored[slice_])
        lost = [record for record in wanted if record not in counts]
        twice = [record for record, times in counts.items() if times > 1]
        wrong.append(f"slice {slice_}: lost {lost[:5]}, twice {twice[:5]}, of {len(wanted)} records")
    return wrong


def _owners(system: SliceSystem) -> list[str]:
    """Every slice is owned by exactly one node, by the head's word and by the nodes' alike."""
    wrong, ownership = [], system.head.core.ownership
    holders: dict[int, list[str]] = {}
    for name, host in system.nodes.items():
        for slice_, held in host.core.slices.items() if host.alive else ():
            holders.setdefault(slice_, []).append(name)
            if (ownership[slice_].owner, ownership[slice_].epoch) != (name, held.epoch):
                wrong.append(f"{name} has slice {slice_} by {held.epoch}, but it is {ownership[slice_].owner}'s")
    return wrong + [
        f"slice {owned.number} is {owned.owner}'s, and held by {holders.get(owned.number)}"
        for owned in ownership.slices
        if holders.get(owned.number) != [owned.owner]
    ]


def _sessions(system: SliceSystem) -> list[str]:
    """Nobody is in a session any more."""
    wrong = [f"session {each.number} of {each.giver} and {each.taker} is open" for each in system.head.core.sessions]
    for name, host in system.nodes.items():
        for slice_, held in host.core.slices.items() if host.alive else ():
            if held.state is SliceState.IN_SESSION or held.position is None:
                wrong.append(f"slice {slice_} is in a session at {name}")
    return wrong
