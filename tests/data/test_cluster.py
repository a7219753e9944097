"""The data cluster as its server uses it, from publication to notice, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from tests.data.world import DATASETS
from tests.waiting import until_async
from tocsin.data import session
from tocsin.data.catalog import Catalog
from tocsin.data.cluster import Cluster
from tocsin.data.fence import Fence
from tocsin.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    StatementError,
    SupersededError,
    UnavailableError,
)
from tocsin.model.control import Changed, Executed, Failing, Notice
from tocsin.model.histories import Cursor
from tocsin.model.messages import Health, Listed, Loaded, Result
from tocsin.model.terms import Asker, Terms
from tocsin.settings import Settings

pytestmark = pytest.mark.spark

APPLICATION = (
    DATASETS
    + """
CREATE FEED reports INTO Reports SLICED BY id INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
  SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""
)
SECONDS = 60

Make = Callable[..., Any]


@pytest.fixture
async def make(spark: SparkSession, tmp_path: Path) -> AsyncIterator[Make]:
    """Starts a cluster on a directory of the test's own; stopped in the end unless the test did."""
    async with AsyncExitStack() as stack:

        async def make(**settings: Any) -> Cluster:
            quick = {
                "channels": {"retry_seconds": 0.05},
                "feeds": {"retry_after_seconds": 0.05},
                **settings,
                "data": {"directory": tmp_path / "data"},
            }
            cluster = Cluster(msgspec.convert(quick, Settings), spark)
            await cluster.start()
            stack.push_async_callback(cluster.stop)
            return cluster

        yield make


@pytest.fixture
async def cluster(make: Make) -> Cluster:
    cluster: Cluster = await make()
    await cluster.ready()
    await cluster.apply(APPLICATION, None)
    for broker in ("north", "south"):
        await cluster.register_broker(broker, f"http://{broker}")
    return cluster


async def publish(cluster: Cluster, **types: str) -> None:
    body = json.dumps([{"id": name, "etype": etype, "severity": 1} for name, etype in types.items()]).encode()
    published = await cluster.publish("reports", body, "application/json")
    assert published.accepted == len(types)


async def pulled(cluster: Cluster, channel: str, first: int, last: int, bes: list[int] | None) -> list[Result]:
    return [result async for part in cluster.pull(channel, first, last, bes) for result in part.results]


async def notice(notices: asyncio.Queue[Notice]) -> Executed:
    told = await asyncio.wait_for(notices.get(), SECONDS)
    assert isinstance(told, Executed)
    return told


async def test_a_publication_becomes_a_notice_and_a_result_for_those_who_hold_it(cluster: Cluster) -> None:
    async with cluster.listen("north") as north, cluster.listen("south") as south:
        fire, flood = await cluster.subscribe("north", "OfType", [{"event": "fire"}, {"event": "flood"}])
        shared, storm = await cluster.subscribe("south", "oftype", [{"event": "fire"}, {"event": "storm"}])
        assert shared == fire
        await publish(cluster, a="fire", b="flood", c="quake")
        told = await notice(north)
        assert (told.channel, told.bes) == ("OfType", [fire, flood])
        assert (await notice(south)).bes == [fire]
        results = await pulled(cluster, "OfType", told.execution, told.execution, told.bes)
        assert [(r.be, json.loads(bytes(r.payload))) for r in results] == [
            (fire, [{"id": "a"}]),
            (flood, [{"id": "b"}]),
        ]
        rates = await cluster.rates([flood, fire, storm, 10**6])
        assert [rate > 0 for rate in rates] == [True, True, False, False]
        await publish(cluster, d="storm")
        assert (await notice(south)).bes == [storm]
        assert north.empty()


async def test_all_brokers_are_told_the_same_rate_and_one_that_attaches_later_at_once(cluster: Cluster) -> None:
    async with cluster.listen("north") as north, cluster.listen("south") as south:
        new = await cluster.attach("north", "OfType", [{"event": "fire"}, {"event": "flood"}])
        assert new.rates == [None, None]
        await cluster.subscribe("south", "OfType", [{"event": "fire"}])
        await publish(cluster, a="fire", b="flood")
        told, other = await notice(north), await notice(south)
        assert other.rates == told.rates[:1]
        assert (other.seconds, all(told.rates)) == (told.seconds, True)
        later = await cluster.attach("south", "OfType", [{"event": "storm"}, {"event": "flood"}])
        assert later.rates[0] is None
        assert later.rates[1]


async def test_a_broker_is_told_with_whose_parameters_a_channel_fails_and_all_others_are_served(
    cluster: Cluster,
) -> None:
    await cluster.apply(
        "CREATE CONTINUOUS CHANNEL Shares(event STRING, part INT) AS "
        "SELECT r.id, r.severity DIV part AS share FROM Reports r WHERE r.etype = event AND is_new(r)",
        None,
    )
    async with cluster.listen("north") as north, cluster.listen("south") as south:
        [bad] = await cluster.subscribe("north", "Shares", [{"event": "fire", "part": 0}])
        [good] = await cluster.subscribe("south", "Shares", [{"event": "fire", "part": 1}])
        for number in range(3):
            await publish(cluster, **{f"r{number}": "fire"})
            assert (await notice(south)).bes == [good]
            told = await asyncio.wait_for(north.get(), SECONDS)
            assert isinstance(told, Failing)
            assert (told.channel, told.bes) == ("Shares", [bad])
            assert "DIVIDE_BY_ZERO" in told.message
        # Set aside by now: who asks for it again is told at once.
        assert await cluster.subscribe("south", "Shares", [{"event": "fire", "part": 0}]) == [bad]
        told = await asyncio.wait_for(south.get(), SECONDS)
        assert isinstance(told, Failing)
        assert "is not for 1 h" in told.message
        [shown] = (await cluster.show("channels", 10)).items[-1:]
        assert (shown["name"], shown["set_aside"], shown["dead_letters"]) == ("Shares", 1, 3)


async def test_a_broker_that_lets_go_is_not_told_any_more(cluster: Cluster) -> None:
    async with cluster.listen("north") as north, cluster.listen("south") as south:
        bes = await cluster.subscribe("north", "OfType", [{"event": "fire"}])
        await cluster.subscribe("south", "OfType", [{"event": "fire"}])
        assert await cluster.unsubscribe("north", [*bes, 10**6]) == 1
        assert await cluster.unsubscribe("north", bes) == 0
        await publish(cluster, a="fire")
        assert (await notice(south)).bes == bes
        assert north.empty()


async def test_a_listener_hears_only_while_it_listens_and_several_hear_the_same(cluster: Cluster) -> None:
    await cluster.subscribe("north", "OfType", [{"event": "fire"}])
    async with cluster.listen("north") as first:
        async with cluster.listen("north") as second:
            await publish(cluster, a="fire")
            assert await notice(first) == await notice(second)
        await publish(cluster, b="fire")
        await notice(first)
        assert second.empty()
    with pytest.raises(NotFoundError, match=r"there is no broker nort .*register it with POST /brokers first"):
        async with cluster.listen("nort"):
            pass


async def test_executions_are_told_of_in_order_without_gaps_in_what_they_found(cluster: Cluster) -> None:
    async with cluster.listen("north") as north:
        await cluster.subscribe("north", "OfType", [{"event": "fire"}])
        names = [f"r{number}" for number in range(12)]
        for name in names:
            await publish(cluster, **{name: "fire"})
        found: list[str] = []
        last = 0
        while len(found) < len(names):
            told = await notice(north)
            assert told.execution > last
            last = told.execution
            [result] = await pulled(cluster, "OfType", last, last, None)
            found += [row["id"] for row in json.loads(bytes(result.payload))]
        assert sorted(found) == sorted(names)


async def test_health_is_starting_until_spark_is_there_then_ok_and_degraded_with_a_reason(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    loop = asyncio.get_running_loop()
    real = Catalog.start

    def slow(self: Catalog) -> None:
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(SECONDS)
        real(self)

    monkeypatch.setattr(Catalog, "start", slow)
    cluster = await make()
    health = await cluster.health()
    assert (health.status, health.spark, health.problems) == ("starting", False, [])
    await cluster.apply(DATASETS + "CREATE FEED reports INTO Reports INTO 1 SLICES", None)
    await publish(cluster, a="fire")
    health = await cluster.health()
    assert (health.status, health.feeds[0].backlog_bytes > 0) == ("starting", True)
    go_on.set()
    await cluster.ready()

    async def stored() -> bool:
        health: Health = await cluster.health()
        return health.feeds[0].backlog_bytes == 0

    await until_async(stored)
    health = await cluster.health()
    assert (health.status, health.spark, health.feeds[0].lag_seconds) == ("ok", True, 0.0)
    fails = "1 DIV (length(r.id) - length(r.id))"
    await cluster.apply(f"CREATE CONTINUOUS CHANNEL Bad() AS SELECT {fails} AS x FROM Reports r", None)
    await cluster.register_broker("north", "http://north")
    await cluster.subscribe("north", "Bad", [{}])
    await cluster.publish("reports", b'{"id": "b", "etype": "fire", "severity": 0}', "application/json")

    async def degraded() -> bool:
        return bool((await cluster.health()).status == "degraded")

    await until_async(degraded)
    health = await cluster.health()
    assert "channel Bad" in health.problems[0]
    assert "DIVIDE_BY_ZERO" in health.problems[0]


async def test_a_spark_that_does_not_start_is_told_and_publications_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise UnavailableError("Spark did not start with master 'spark://nowhere'")

    monkeypatch.setattr(session, "start", refused)
    settings = msgspec.convert({"data": {"directory": tmp_path / "data"}}, Settings)
    cluster = Cluster(settings)
    await cluster.start()
    await cluster.ready()
    await cluster.apply(DATASETS + "CREATE FEED reports INTO Reports", None)
    await publish(cluster, a="fire")
    health = await cluster.health()
    assert (health.status, health.spark) == ("degraded", False)
    assert "Spark did not start" in health.problems[0]
    [logged] = [record for record in caplog.records if record.getMessage() == "the data cluster cannot begin"]
    assert not logged.exc_info, "its sentence says all"
    with pytest.raises(UnavailableError, match="Spark did not start"):
        await cluster.apply("CREATE CONTINUOUS CHANNEL C() AS SELECT r.id FROM Reports r", None)
    await cluster.stop()


async def test_it_goes_on_after_a_stop_and_a_start_on_the_same_directory(cluster: Cluster, make: Make) -> None:
    [fire] = await cluster.subscribe("north", "OfType", [{"event": "fire"}])
    async with cluster.listen("north") as north:
        await publish(cluster, a="fire")
        first = await notice(north)
    # What is accepted at the last moment is there at the next start.
    await publish(cluster, b="fire")
    await cluster.stop()
    again: Cluster = await make()
    await again.ready()

    async def found() -> list[Any] | None:
        results = await pulled(again, "OfType", 1, 10**9, [fire])
        rows = [row for result in results for row in json.loads(bytes(result.payload))]
        return rows if len(rows) == 2 else None

    assert await until_async(found) == [{"id": "a"}, {"id": "b"}]
    async with again.listen("north") as north:
        await publish(again, a="fire", c="fire")
        told = await notice(north)
        assert (told.execution > first.execution, told.bes) == (True, [fire])
    assert {outcome.action for outcome in await again.apply(APPLICATION, None)} == {"unchanged"}


async def test_it_stops_while_it_is_busy_and_what_was_accepted_is_stored_afterwards(
    cluster: Cluster, make: Make
) -> None:
    await cluster.subscribe("north", "OfType", [{"event": "fire"}])
    accepted: list[str] = []

    async def publisher() -> None:
        for number in range(10**6):
            await publish(cluster, **{f"r{number}": "fire"})
            accepted.append(f"r{number}")

    publishing = asyncio.create_task(publisher())
    await until_async(lambda: len(accepted) > 20)
    await cluster.stop()
    with pytest.raises(UnavailableError):
        await publishing
    again: Cluster = await make()
    await again.ready()

    async def found() -> set[str] | None:
        results = await pulled(again, "OfType", 1, 10**9, None)
        rows = [row["id"] for result in results for row in json.loads(bytes(result.payload))]
        assert len(rows) == len(set(rows))
        return set(rows) if set(rows) >= set(accepted) else None

    assert await until_async(found)


async def test_two_clusters_do_not_share_a_directory(cluster: Cluster, make: Make) -> None:
    with pytest.raises(ConflictError, match="stop that process first"):
        await make()
    assert (await cluster.health()).status == "ok"


async def test_what_makes_no_sense_is_refused(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError, match="no feed report "):
        await cluster.publish("report", b"{}", "application/json")
    with pytest.raises(NotFoundError, match="no channel OfTyp "):
        await cluster.subscribe("north", "OfTyp", [{"event": "fire"}])
    with pytest.raises(NotFoundError, match="no broker"):
        await cluster.subscribe("nobody", "OfType", [{"event": "fire"}])
    with pytest.raises(InvalidError, match="first must not be after last"):
        await pulled(cluster, "OfType", 3, 2, None)
    with pytest.raises(StatementError):
        await cluster.apply("CREATE", None)
    assert await cluster.subscribe("north", "OfType", []) == []
    assert await pulled(cluster, "OfType", 1, 10, None) == []


async def test_a_reference_dataset_is_loaded_and_shown(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.apply("CREATE REFERENCE DATASET Shelters (id STRING) PRIMARY KEY id", None)
    (tmp_path / "s.csv").write_text("id\na\nb\n")
    assert await cluster.load("shelters", tmp_path / "s.csv") == Loaded(2)
    assert await cluster.load("shelters", tmp_path / "s.csv") == Loaded(2, unchanged=True)
    assert [row["name"] for row in (await cluster.show("datasets", 9)).items] == ["Reports", "People", "Shelters"]
    assert [row["name"] for row in (await cluster.show("brokers", 9)).items] == ["north", "south"]


async def test_a_few_of_many_subscriptions_are_shown_and_all_are_counted(cluster: Cluster) -> None:
    await cluster.subscribe("north", "OfType", [{"event": f"e{number}"} for number in range(1200)])
    shown = await cluster.show("subscriptions", 1100)
    assert (len(shown.items), shown.total) == (1100, 1200)


async def test_a_dropped_channel_takes_its_subscriptions_rates_and_results_along(cluster: Cluster) -> None:
    async with cluster.listen("north") as north:
        bes = await cluster.subscribe("north", "OfType", [{"event": "fire"}])
        await publish(cluster, a="fire")
        await notice(north)
    await cluster.apply("DROP CHANNEL OfType", None)
    assert await cluster.rates(bes) == [0.0]
    with pytest.raises(NotFoundError):
        await pulled(cluster, "OfType", 1, 1, None)
    assert await cluster.show("subscriptions", 9) == Listed([], 0)
    assert await cluster.unsubscribe("north", bes) == 0


MINE = """
CREATE KEYED DATASET Places (userId STRING, x DOUBLE) PRIMARY KEY userId;
CREATE FEED places INTO Places WITH userId FROM SUBSCRIBER FOR SUBSCRIBERS;
CREATE CONTINUOUS CHANNEL Mine(me STRING FROM SUBSCRIBER) AS
  SELECT p.userId, p.x FROM Places p WHERE p.userId = me AND is_new(p);
"""
ANN, BOB = Asker("ann"), Asker("bob", ("police",))


def shares(**records: dict[str, Any]) -> bytes:
    return json.dumps([{"subscriber": name, "records": [record]} for name, record in records.items()]).encode()


async def test_what_is_bound_is_filled_in_and_nobodys_else(cluster: Cluster) -> None:
    await cluster.apply(MINE, None)
    async with cluster.listen("north") as notices:
        attachment = await cluster.attach("north", "Mine", [{}], ANN)
        assert attachment.parameters == [{"me": "ann"}]
        with pytest.raises(ForbiddenError, match="'me' is always the name in the token, bob"):
            await cluster.attach("north", "mine", [{"me": "ann"}], BOB)
        assert (await cluster.attach("north", "Mine", [{"me": "ann"}])).bes == attachment.bes, "by the broker itself"
        published = await cluster.publish_shares("places", shares(ann={"x": 1.0}, bob={"userId": "ann", "x": 9.0}))
        assert (published.accepted, [refused.index for refused in published.refused]) == (1, [1])
        notice = await notices.get()
        assert isinstance(notice, Executed)
        [result] = await pulled(cluster, "Mine", notice.execution, notice.execution, None)
    assert json.loads(bytes(result.payload)) == [{"userId": "ann", "x": 1.0}]


async def test_a_feed_that_says_nothing_is_closed_to_subscribers(cluster: Cluster) -> None:
    published = await cluster.publish_shares("reports", shares(ann={"id": "1", "etype": "fire"}))
    assert (published.accepted, list(published.denied)) == (0, [0])
    assert "feed reports is not open to subscribers" in published.denied[0]


async def test_other_terms_are_told_to_brokers_and_survive_a_restart(make: Make) -> None:
    cluster = await make()
    await cluster.ready()
    await cluster.apply(APPLICATION, None)
    await cluster.register_broker("north", "http://north")
    closed = APPLICATION.replace("CREATE CONTINUOUS", "CREATE OR REPLACE CONTINUOUS").replace(
        "OfType(event STRING) AS", "OfType(event STRING) FOR GROUPS ('police') AS"
    )
    async with cluster.listen("north") as notices:
        assert (await cluster.apply(closed, None))[-1].action == "replaced"
        assert await notices.get() == Changed("OfType", Terms(groups=("police",)))
    assert (await cluster.apply(closed, None))[-1].action == "unchanged"
    await cluster.stop()
    again = await make()
    with pytest.raises(ForbiddenError, match="channel OfType is for the groups police"):
        await again.attach("north", "OfType", [{"event": "fire"}], ANN)
    assert len((await again.attach("north", "OfType", [{"event": "fire"}], BOB)).bes) == 1


async def test_what_a_broker_knew_and_the_data_do_not_have_is_said_in_health_and_log(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.attach("north", "OfType", [{"event": "fire"}])
    position = cluster.position("oftype")
    assert position
    cluster.compare("north", "OfType", Cursor(10**6, position.incarnation))
    assert (await cluster.health()).details == {}, "under the present incarnation only this directory counts"
    for _ in range(2):
        cluster.compare("north", "OfType", Cursor(7, "of another life"))
    health = await cluster.health()
    [setback] = health.details["setbacks"]
    assert "broker north knew execution 7" in setback
    assert "has never counted so" in setback
    assert health.status == "ok"
    assert sum("not those of before" in record.getMessage() for record in caplog.records) == 1
    await cluster.apply("DROP CHANNEL OfType", None)
    assert (await cluster.health()).details == {}


async def test_one_from_whom_another_has_taken_over_accepts_nothing_and_says_so(
    cluster: Cluster, tmp_path: Path
) -> None:
    await publish(cluster, a="flood")
    Fence(tmp_path / "data", cluster.term + 1).put_up()
    with pytest.raises(SupersededError, match="another data cluster has taken over"):
        await publish(cluster, b="flood")
    async with asyncio.timeout(SECONDS):
        with pytest.raises(SupersededError):
            await cluster.wait_for_breakdown()
    [problem] = [text for text in (await cluster.health()).problems if "another data cluster" in text]
    assert "this one ends; ask the other one" in problem


async def test_a_state_that_is_an_older_copy_goes_on_under_a_term_that_the_directory_has_not_seen(
    make: Make, tmp_path: Path
) -> None:
    first = await make()
    await first.ready()
    await first.apply(APPLICATION, None)
    await publish(first, a="flood")
    await first.stop()
    Fence(tmp_path / "data", 41).put_up()
    again = await make()
    assert again.term == 42
    await again.ready()
    await publish(again, b="flood")
