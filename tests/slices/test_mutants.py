"""The checker checked: small faults put into the cores of head and node must be found by some of many schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tocsin.simulate.faults.campaign import run_slice_schedule
from tocsin.simulate.slices import lake
from tocsin.slices import apart, balancing, commits, failures, head, node, ownership, sessions
from tocsin.slices.messages import CommitRefused, Epoch, Order, SlicePart, Welcome

SEEDS = 300


def nothing(*arguments: Any, **options: Any) -> None:
    """Forgets to do it."""


def takes_what_begins_anywhere(self: commits.CommitQueue, node: str, part: SlicePart) -> bool:
    return self._ownership.is_owner(node, part.slice, part.epoch) and part.end > self._accepted[part.slice]


def takes_half_of_it(self: commits.CommitQueue, offered: commits.OfferedCommit) -> bool:
    fits = [part for part in offered.commit.parts if self._fits(offered.node, part)]
    for part in fits:
        self._accepted[part.slice] = part.end
        self._busy[part.slice] += 1
    if fits:
        self._waiting.append(offered)
    return bool(fits)


def keeps_what_rests_on_it(self: commits.CommitQueue, number: int) -> list[commits.OfferedCommit]:
    failed, self._storing = self._storing, []
    for offered in failed:
        for part in offered.commit.parts:
            if not any(part.slice in {p.slice for p in later.commit.parts} for later in self._waiting):
                self._accepted[part.slice] = self.markers[part.slice]
    self._settle(failed)
    return failed


def forgets_to_go_back(self: commits.CommitQueue, number: int) -> list[commits.OfferedCommit]:
    failed, self._storing, self._waiting = [*self._storing, *self._waiting], [], []
    self._settle(failed)
    return failed


def drops_all_that_waits(self: commits.CommitQueue, number: int) -> list[commits.OfferedCommit]:
    failed, self._storing, self._waiting = [*self._storing, *self._waiting], [], []
    self._accepted = list(self.markers)
    self._settle(failed)
    return failed


def keeps_nobody_apart(self: apart.StoredApart, node: str) -> bool:
    return False


def waits_from_the_beginning(
    self: ownership.Ownership, slice_: int, now: float, waits: bool, offered: bool = False
) -> bool:
    return _wait(self, slice_, now, waits and not offered)


def does_not_go_back(self: node.NodeCore, now: float, refused: CommitRefused) -> None:
    self._drop(refused.batch)


def keeps_what_it_had(self: node.NodeCore, now: float, grants: list[Any]) -> None:
    self._batches.clear()
    self._processing = None
    self._add(0, grants)


def obeys_twice(self: node.NodeCore, order: Order) -> bool:
    if isinstance(order, Welcome) == self._welcomed:
        return False
    self._welcomed = True
    return True


def lets_go_of_nobody(self: sessions.BalancingSessions, session: sessions.BalancingSession) -> None:
    self._end(session)


def nobody_is_new(self: balancing.SliceBalancer, registry: Any) -> None:
    for member in registry:
        member.joining = False


def owns_by_any_epoch(self: ownership.Ownership, node: str, slice_: int, epoch: Epoch) -> bool:
    return self.slices[slice_].owner == node


def believes_reports(self: head.HeadCore, now: float, ends: Any, checking: Any) -> None:
    loads = [load for member in self.registry if member.report for load in member.report.slices]
    waiting = {load.slice for load in loads if load.backlog}
    _watch(self, now, [end if slice_ in waiting else 0 for slice_, end in enumerate(ends)], checking)


def tries_all_again(self: failures.FailingSlices, now: float, slices: Any) -> list[int]:
    return list(slices)


def stores_for_anybody(self: lake.SimulatedDataset, term: int, *rest: Any) -> None:
    _store(self, self._term, *rest)


_store = lake.SimulatedDataset.store
_watch = head.HeadCore._watch
_wait = ownership.Ownership.watch

MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a commit counts wherever it begins": (commits.CommitQueue, "_fits", takes_what_begins_anywhere),
    "who owned a slice by an older epoch owns it": (ownership.Ownership, "is_owner", owns_by_any_epoch),
    "who does not get on keeps its slices": (head.HeadCore, "_watch", nothing),
    "the head believes that nothing waits": (head.HeadCore, "_watch", believes_reports),
    "one slice that cannot be read holds up all others": (failures.FailingSlices, "choose", tries_all_again),
    "a commit counts in part": (commits.CommitQueue, "offer", takes_half_of_it),
    "what rests on a failed commit counts": (commits.CommitQueue, "failed", keeps_what_rests_on_it),
    "the head does not go back to the markers when the disk refuses": (
        commits.CommitQueue,
        "failed",
        forgets_to_go_back,
    ),
    "what is stored together fails together": (commits.CommitQueue, "failed", drops_all_that_waits),
    "whose commits cannot be stored is stored with all others": (
        apart.StoredApart,
        "__contains__",
        keeps_nobody_apart,
    ),
    "the time that a commit took counts for nobody though it failed": (ownership.Ownership, "blame", nothing),
    "whose commits fail has all the time": (ownership.Ownership, "watch", waits_from_the_beginning),
    "a head of an older term can store": (lake.SimulatedDataset, "store", stores_for_anybody),
    "a node does not go back when it is refused": (node.NodeCore, "_refused", does_not_go_back),
    "a node keeps what the head says it has not": (node.NodeCore, "_start_over", keeps_what_it_had),
    "a node obeys an order twice": (node.NodeCore, "_heeds", obeys_twice),
    "a node does not say what it cannot process": (node.NodeCore, "_cannot", nothing),
    "a node keeps what it was told to remove": (node.NodeCore, "_remove", nothing),
    "a session has no end": (sessions.BalancingSessions, "due", nothing),
    "the gate is never opened": (sessions.BalancingSessions, "_open", lets_go_of_nobody),
    "the slices of the dead stay with them": (head.HeadCore, "_bury", nothing),
    "slices without an owner are given to nobody": (head.HeadCore, "_place", nothing),
    "who has lost all slices is not new again": (balancing.SliceBalancer, "_renew", nothing),
    "who joins is seen to no more than others": (balancing.SliceBalancer, "_renew", nobody_is_new),
}


# Seeds that are tried before all others: these mistakes show in few schedules.
RARE = {
    "who owned a slice by an older epoch owns it": (2290,),
    "the time that a commit took counts for nobody though it failed": (135, 186),
    "who has lost all slices is not new again": (202,),
    "a node does not go back when it is refused": (35, 83, 111),
    "a node does not say what it cannot process": (71, 169, 171),
}
# What the head's watch over who gets on heals as well: it shows where nobody watches.
HEALED = {"a node does not go back when it is refused", "a node does not say what it cannot process"}


def seeds(name: str) -> Iterator[int]:
    yield from RARE.get(name, ())
    yield from range(SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in HEALED])
def test_schedules_catch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutant)
    assert any(run_slice_schedule(seed).wrong for seed in seeds(name)), f"schedules hold although {name}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HEALED))
def test_schedules_catch_where_nobody_watches_who_gets_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head.HeadCore, "_watch", nothing)

    def catches(seed: int) -> bool:
        """The schedule fails for this mistake, and not because nobody watches."""
        with monkeypatch.context() as mutated:
            mutated.setattr(*MUTANTS[name])
            if not run_slice_schedule(seed).wrong:
                return False
        return not run_slice_schedule(seed).wrong

    assert any(catches(seed) for seed in seeds(name)), f"schedules hold although {name}"
