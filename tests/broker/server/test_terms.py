"""Anybody's parameters and anybody's records are out of reach, from a subscriber's socket to the data cluster."""

from __future__ import annotations

import msgspec

from tests.broker.server.world import World


async def test_nobody_asks_where_another_is(world: World) -> None:
    await world.cluster.apply("CREATE CONTINUOUS CHANNEL Near(me STRING FROM SUBSCRIBER) AS SELECT me", None)
    async with world.member("ann") as ann, world.member("bob") as bob:
        own = await ann.ask(type="subscribe", id=1, channel="Near", parameters={})
        assert own["held"]["parameters"] == {"me": "ann"}
        refused = await bob.ask(type="subscribe", id=2, channel="Near", parameters={"me": "ann"})
        assert (refused["type"], refused["code"], refused["id"]) == ("error", "forbidden", 2)
    assert world.cluster.subscriptions == [("Near", {"me": "ann"})]


async def test_nobody_moves_another(world: World) -> None:
    async with world.member("ann") as ann, world.member("bob") as bob:
        moved = await bob.ask(type="publish", id=1, feed="places", records=[{"userId": "ann", "x": 1.0}, {"x": 2.0}])
        assert moved["accepted"] == 1
        assert "'userId' is always the name in the token, bob" in moved["refused"][0]["reason"]
        assert (await ann.ask(type="publish", id=1, feed="places", records=[{"x": 3.0}]))["accepted"] == 1
    records = [msgspec.json.decode(line) for line in world.cluster.published["places"]]
    assert [(record["userId"], record["x"]) for record in records] == [("bob", 2.0), ("ann", 3.0)]


async def test_a_feed_is_closed_to_subscribers_unless_it_says_so(world: World) -> None:
    async with world.member("ann") as ann:
        refused = await ann.ask(type="publish", id=1, feed="alarms", records=[{"userId": "ann"}])
        assert (refused["code"], refused["id"]) == ("forbidden", 1)
        assert "feed alarms is not open to subscribers" in refused["message"]
    assert not world.cluster.published.get("alarms")
