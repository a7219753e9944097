"""Equal subscriptions are one, an id means one subscription for ever, and a change is made as a whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tocsin.data.store import Store
from tocsin.errors import ConflictError, NotFoundError
from tocsin.schema.definitions import Channel, Column
from tocsin.schema.types import parse_type

OpenStore = Callable[[], Store]


def keys(*numbers: int) -> list[str]:
    return [f'["{number}"]' for number in numbers]


def held(store: Store) -> dict[str, list[int]]:
    return {broker: bes.tolist() for broker, bes in store.subscriptions.holdings().items()}


def rows(store: Store, channel: Channel) -> dict[int, str]:
    return dict(row for page in store.subscriptions.pages(channel.name) for row in page)


def test_equal_subscriptions_are_one_whoever_attaches_them(store: Store, channel: Channel) -> None:
    one, two, again = store.subscriptions.attach(channel, "a", keys(1, 2, 1))
    assert one == again != two
    three, shared = store.subscriptions.attach(channel, "b", keys(3, 2))
    assert shared == two
    assert store.subscriptions.attach(channel, "a", keys(2, 1)) == [two, one]
    assert sorted(rows(store, channel).values()) == keys(1, 2, 3)
    assert held(store) == {"a": sorted([one, two]), "b": sorted([two, three])}


def test_the_last_holder_to_let_go_removes_the_subscription(store: Store, channel: Channel) -> None:
    bes = store.subscriptions.attach(channel, "a", keys(1, 2))
    store.subscriptions.attach(channel, "b", keys(2))
    assert store.subscriptions.detach("a", [*bes, *bes, 999]) == {"oftype": [bes[0]]}
    assert store.subscriptions.detach("a", bes) == {}
    assert held(store) == {"a": [], "b": [bes[1]]}
    assert store.subscriptions.detach("b", bes) == {"oftype": [bes[1]]}
    assert rows(store, channel) == {}


def test_an_id_is_never_used_again(store: Store, channel: Channel, open_store: OpenStore) -> None:
    (first,) = store.subscriptions.attach(channel, "a", keys(1))
    store.subscriptions.detach("a", [first])
    (second,) = open_store().subscriptions.attach(channel, "a", keys(1))
    assert second > first


def test_a_dropped_channel_takes_its_subscriptions_along_and_no_others(store: Store, channel: Channel) -> None:
    other = msgspec.structs.replace(channel, name="Other")
    store.definitions.put(other)
    kept = store.subscriptions.attach(other, "a", keys(1))
    dropped = store.subscriptions.attach(channel, "a", keys(1, 2))
    store.definitions.remove(Channel, "oftype")
    assert [store.subscriptions.find(be) for be in dropped] == [None, None]
    assert held(store) == {"a": kept, "b": []}
    assert store.subscriptions.find(kept[0]) == ("other", keys(1)[0])
    store.subscriptions.drop("Other")
    assert held(store) == {"a": [], "b": []}
    store.subscriptions.drop("never there")


def test_an_unknown_channel_or_broker_is_refused_and_nothing_is_attached(store: Store, channel: Channel) -> None:
    with pytest.raises(NotFoundError, match='there is no channel "Nowhere": create it first'):
        store.subscriptions.attach(msgspec.structs.replace(channel, name="Nowhere"), "a", keys(1))
    with pytest.raises(NotFoundError, match='there is no broker "z": register it first'):
        store.subscriptions.attach(channel, "z", keys(1))
    with pytest.raises(NotFoundError, match='there is no broker "z"'):
        store.subscriptions.detach("z", [1])
    assert rows(store, channel) == {}


def test_keys_for_parameters_the_channel_no_longer_has_are_refused(store: Store, channel: Channel) -> None:
    store.definitions.put(msgspec.structs.replace(channel, parameters=(Column("n", parse_type("INT")),)))
    with pytest.raises(ConflictError, match="OfType has been created anew with other parameters"):
        store.subscriptions.attach(channel, "a", keys(1))


@pytest.mark.slow
def test_large_batches_are_worked_off_whole_and_in_order(store: Store, channel: Channel) -> None:
    batch = keys(*range(120_000))
    bes = store.subscriptions.attach(channel, "a", batch)
    assert [rows(store, channel)[be] for be in bes[::10_000]] == batch[::10_000]
    assert held(store)["a"] == sorted(bes)
    assert sorted(store.subscriptions.detach("a", bes)["oftype"]) == sorted(bes)
    assert rows(store, channel) == {}


def test_threads_attaching_at_once_lose_nothing_and_share_what_is_equal(store: Store, channel: Channel) -> None:
    batches = [keys(*range(start, start + 300)) for start in range(0, 1000, 100)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda batch: store.subscriptions.attach(channel, "a", batch), batches))
    expected = {key: be for be, key in rows(store, channel).items()}
    assert len(expected) == 1200
    assert found == [[expected[key] for key in batch] for batch in batches]


ATTACHER = """
import sys
from pathlib import Path
from tocsin.data.store import Store
from tocsin.schema.definitions import Channel

store = Store(Path(sys.argv[1]), url=sys.argv[3])
channel = store.definitions.find(Channel, "OfType")
for batch in range(int(sys.argv[2]), 1_000_000):
    print(batch, flush=True)
    store.subscriptions.attach(channel, "a", [f'["{batch}-{number}"]' for number in range(5_000)])
    print("done", flush=True)
"""


@pytest.mark.process
def test_a_batch_cut_short_by_a_kill_is_there_as_a_whole_or_not_at_all(
    store: Store, channel: Channel, tmp_path: Path, url: str
) -> None:
    first = 0
    for lines in (1, 2, 3, 6, 7, 8):
        arguments = [sys.executable, "-c", ATTACHER, str(tmp_path / "data"), str(first), url]
        with subprocess.Popen(
            arguments, stdout=subprocess.PIPE, env={"PYTHONPATH": os.pathsep.join(sys.path)}
        ) as child:
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            said += child.stdout.readlines()
        finished = first + said.count(b"done\n")
        batches: dict[str, int] = {}
        for key in rows(store, channel).values():
            batch = key.split("-")[0]
            batches[batch] = batches.get(batch, 0) + 1
        assert set(batches.values()) <= {5_000}
        # The batch under way may have been made just before the process died.
        assert finished <= len(batches) <= finished + 1
        assert sorted(rows(store, channel)) == held(store)["a"]
        first = len(batches)
