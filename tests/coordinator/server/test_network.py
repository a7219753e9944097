"""Subscribers on brokers, over real links: placed, moved, kept through restarts."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.broker.world import DataClusterModel
from tests.coordinator.server.live import LiveBroker
from tests.coordinator.server.running import Running, running, settings
from tests.postgresql import PostgresqlServer
from tests.waiting import until_async
from tocsin.errors import ConflictError
from tocsin.model import subscriber
from tocsin.model.coordination import Load
from tocsin.settings.coordinator import CoordinatorSettings


@pytest.fixture(params=["sqlite", "postgresql"])
def its(request: pytest.FixtureRequest, tmp_path: Path) -> CoordinatorSettings:
    """Settings with either store."""
    if request.param == "sqlite":
        return settings(tmp_path)
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    return settings(tmp_path, store=server.database())


async def _located(coordinator: Running, token: str) -> str:
    answer = await coordinator.call("GET", "/broker", token)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["broker"])


async def _subscribed(broker: LiveBroker, token: str, value: int = 1) -> int:
    """A session of a subscriber that holds a subscription, as it was told."""
    session = await broker.login(token)
    broker.say(session, subscriber.Subscribe(1, "c", {"value": value}))
    held = (await broker.answer(session, subscriber.Subscribed)).held
    return int(held.subscription)


async def _count(coordinator: Running) -> dict[str, int]:
    return {broker["name"]: broker["subscribers"] for broker in (await coordinator.status())["brokers"]}


async def test_tokens_places_and_subscriptions_outlive_the_coordinator(its: CoordinatorSettings) -> None:
    data, tokens = DataClusterModel(), dict[str, str]()
    brokers = {name: LiveBroker(name, data) for name in ("north", "south")}
    homes, held = dict[str, str](), dict[str, int]()
    async with running(its) as coordinator, AsyncExitStack() as stack:
        for broker in brokers.values():
            await stack.enter_async_context(broker.linked(coordinator))
        for name in ("ann", "bob", "eve"):
            tokens[name] = await coordinator.subscriber(name)
            homes[name] = await _located(coordinator, tokens[name])
            held[name] = await _subscribed(brokers[homes[name]], tokens[name])
    assert set(homes.values()) == {"north", "south"}
    async with running(its) as coordinator, AsyncExitStack() as stack:
        for broker in (LiveBroker(name, data) for name in brokers):
            brokers[broker.name] = await stack.enter_async_context(broker.linked(coordinator))
        for name, token in tokens.items():
            assert await _located(coordinator, token) == homes[name]
            session = await brokers[homes[name]].login(token)
            welcome = await brokers[homes[name]].answer(session, subscriber.Welcome)
            assert [each.subscription for each in welcome.subscriptions] == [held[name]]


async def test_whose_broker_dies_is_placed_elsewhere(its: CoordinatorSettings) -> None:
    data = DataClusterModel()
    async with running(its) as coordinator, AsyncExitStack() as stack:
        north = LiveBroker("north", data)
        async with north.linked(coordinator):
            token = await coordinator.subscriber("ann")
            assert await _located(coordinator, token) == "north"
            held = await _subscribed(north, token)
            south = await stack.enter_async_context(LiveBroker("south", data).linked(coordinator))

        async def elsewhere() -> bool:
            return await _located(coordinator, token) == "south"

        await until_async(elsewhere, "shelter")
        session = await south.login(token)
        welcome = await south.answer(session, subscriber.Welcome)
        assert [each.subscription for each in welcome.subscriptions] == [held]


async def test_a_drained_broker_ends_empty_and_may_serve_again(its: CoordinatorSettings) -> None:
    data = DataClusterModel()
    async with running(its) as coordinator, AsyncExitStack() as stack:
        brokers = {
            name: await stack.enter_async_context(LiveBroker(name, data).linked(coordinator))
            for name in ("north", "south")
        }
        for number in range(4):
            token = await coordinator.subscriber(f"s{number}")
            await _subscribed(brokers[await _located(coordinator, token)], token, number)
        answer = await coordinator.call("PUT", "/brokers/north/draining", json={"on": True})
        assert answer.status_code == 200

        await until_async(lambda: len(_moved(brokers["north"])) == 2, "handovers")
        for number in range(4):
            await brokers["south"].login(coordinator.token(f"s{number}", "subscriber"))

        async def empty() -> bool:
            return await _count(coordinator) == {"north": 0, "south": 4}

        await until_async(empty, "empty broker")
        assert {broker["name"]: broker["state"] for broker in (await coordinator.status())["brokers"]}[
            "north"
        ] == "draining"
        await coordinator.call("PUT", "/brokers/north/draining", json={"on": False})
        assert "draining" not in {broker["state"] for broker in (await coordinator.status())["brokers"]}


async def test_a_plan_can_be_seen_and_then_carried_out(tmp_path: Path) -> None:
    its = settings(tmp_path, interval_seconds=1_000)
    data = DataClusterModel()
    async with running(its) as coordinator, AsyncExitStack() as stack:
        north = await stack.enter_async_context(LiveBroker("north", data).linked(coordinator))
        for number in range(6):
            token = await coordinator.subscriber(f"s{number}")
            assert await _located(coordinator, token) == "north"
            await _subscribed(north, token, number)
        south = await stack.enter_async_context(LiveBroker("south", data).linked(coordinator))
        _report(north, dict.fromkeys(_ids(north), 1_000.0))
        _report(south, {})

        async def loaded() -> bool:
            return float((await coordinator.status())["highest"]) > 0

        await until_async(loaded, "load")
        plan = (await coordinator.call("GET", "/plan")).json()
        assert plan["moves"] > 0
        assert [line["broker"] for line in plan["brokers"]] == ["north", "south"]
        assert (await coordinator.status())["moving"] == 0
        applied = (await coordinator.call("POST", "/plan")).json()
        assert applied["moves"] == plan["moves"]

        await until_async(lambda: len(_moved(north)) == applied["moves"], "handovers")


def _ids(broker: LiveBroker) -> set[int]:
    """The subscriptions that a broker's subscribers were told of."""
    said = [one for session in broker.told.values() for one in session]
    return {one.held.subscription for one in said if isinstance(one, subscriber.Subscribed)}


def _report(broker: LiveBroker, rates: dict[int, float]) -> None:
    total = sum(rates.values())
    broker.report(Load(total, total, rates))


def _moved(broker: LiveBroker) -> list[subscriber.Moved]:
    return [said for session in broker.told.values() for said in session if isinstance(said, subscriber.Moved)]


async def test_a_second_coordinator_on_the_same_store_is_refused(its: CoordinatorSettings) -> None:
    async with running(its):
        with pytest.raises(ConflictError, match="stop"):
            async with running(its):
                pass


async def test_calls_at_the_same_time_are_all_answered(its: CoordinatorSettings) -> None:
    async with running(its) as coordinator:
        names = [f"s{number}" for number in range(100)]
        tokens = await asyncio.gather(*(coordinator.subscriber(name) for name in names))
        assert len(set(tokens)) == 100
        assert (await coordinator.status())["subscribers"] == 100
