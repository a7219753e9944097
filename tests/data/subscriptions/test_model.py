"""Any sequence of changes leaves the registry, its snapshots and its next start as a plain dictionary would have it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.examples import examples
from tocsin.data.store import Store
from tocsin.data.subscriptions import Segments, SubscriptionRegistry
from tocsin.schema.definitions import Channel, ChannelKind, Column
from tocsin.schema.types import parse_type

CHANNELS = {
    name: Channel(name, ChannelKind.CONTINUOUS, (Column("n", parse_type(type_)),), "SELECT 1")
    for name, type_ in (("Numbers", "BIGINT"), ("Halves", "DOUBLE"))
}
BROKERS = ("a", "b", "c")


def read(segments: Segments) -> dict[int, float]:
    tables = [segments.added, *([segments.held.read()] if segments.held else [])]
    listed = [(row["__be"], row["__p0"]) for table in tables for row in table.to_pylist()]
    removed = set(segments.removed.to_pylist())
    kept = [(be, value) for be, value in listed if be not in removed]
    assert len(kept) == segments.rows == len(listed) - len(removed)
    return dict(kept)


class Registry(RuleBasedStateMachine):
    """The reference: who holds which (channel, value), the id of each, and the snapshots taken on the way."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = TemporaryDirectory()
        self._path = Path(self._directory.name)
        self._store = Store(self._path)
        for channel in CHANNELS.values():
            self._store.definitions.put(channel)
        for broker in BROKERS:
            self._store.brokers.register(broker, "http://localhost")
        self._live = SubscriptionRegistry(self._store, self._path / "subscriptions")
        self._holders: dict[tuple[str, float], set[str]] = {}
        self._ids: dict[tuple[str, float], int] = {}
        self._used: set[int] = set()
        self._snapshots: list[tuple[Segments, dict[int, float]]] = []

    def _expected(self, channel: str) -> dict[int, float]:
        return {be: value for (name, value), be in self._ids.items() if name == channel}

    @rule(channel=st.sampled_from([*CHANNELS]), broker=st.sampled_from(BROKERS), values=st.lists(st.integers(0, 30)))
    def attach(self, channel: str, broker: str, values: list[int]) -> None:
        bes = self._live.attach(CHANNELS[channel], broker, [{"n": value} for value in values])
        for be, value in zip(bes, values, strict=True):
            known = self._ids.get((channel, value))
            assert be == known if known else be not in self._used
            self._ids[channel, value] = be
            self._used.add(be)
            self._holders.setdefault((channel, value), set()).add(broker)

    @rule(broker=st.sampled_from(BROKERS), chosen=st.sets(st.integers(1, 200)))
    def detach(self, broker: str, chosen: set[int]) -> None:
        gone = []
        for subscription, be in list(self._ids.items()):
            if be in chosen:
                self._holders[subscription].discard(broker)
                if not self._holders[subscription]:
                    gone.append(self._ids.pop(subscription))
        assert self._live.detach(broker, sorted(chosen)).tolist() == sorted(gone)

    @rule(channel=st.sampled_from([*CHANNELS]))
    def rebase(self, channel: str) -> None:
        changed = self._live.segments(channel).changes > 0
        assert self._live.rebase(channel) == changed
        assert self._live.segments(channel).changes == 0

    @rule(channel=st.sampled_from([*CHANNELS]))
    def look(self, channel: str) -> None:
        self._snapshots.append((self._live.segments(channel), self._expected(channel)))

    @rule(channel=st.sampled_from([*CHANNELS]))
    def drop(self, channel: str) -> None:
        assert self._live.drop(channel).tolist() == sorted(self._expected(channel))
        for subscription in [known for known in self._ids if known[0] == channel]:
            del self._ids[subscription], self._holders[subscription]

    @rule(forget_bases=st.booleans())
    def restart(self, forget_bases: bool) -> None:
        self._snapshots.clear()
        self._store.close()
        if forget_bases:
            for file in (self._path / "subscriptions").iterdir():
                file.unlink()
        self._store = Store(self._path)
        self._live = SubscriptionRegistry(self._store, self._path / "subscriptions")

    @invariant()
    def segments_are_as_expected(self) -> None:
        for channel in CHANNELS:
            assert read(self._live.segments(channel)) == self._expected(channel)
            assert self._live.segments(channel).ids().tolist() == sorted(self._expected(channel))
            assert self._live.count(channel) == len(self._expected(channel))

    @invariant()
    def earlier_snapshots_are_as_they_were(self) -> None:
        for segments, expected in self._snapshots:
            assert read(segments) == expected

    @invariant()
    def holders_are_as_expected(self) -> None:
        expected: dict[str, list[int]] = {}
        for subscription, be in sorted(self._ids.items(), key=lambda item: item[1]):
            for broker in self._holders[subscription]:
                expected.setdefault(broker, []).append(be)
        found = {broker: bes.tolist() for broker, bes in self._live.holders(self._ids.values()).items()}
        assert found == expected
        assert {broker: self._live.of(broker).tolist() for broker in expected} == expected

    def teardown(self) -> None:
        self._snapshots.clear()
        self._store.close()
        self._directory.cleanup()


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(max_examples=examples(30), stateful_step_count=20)
