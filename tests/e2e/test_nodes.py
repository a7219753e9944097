"""Three nodes share a feed with a hot slice while everybody dies in turn: every accepted record is stored once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final

import httpx
import pytest
from deltalake import DeltaTable

from tests.e2e import functions
from tests.e2e.conftest import Cluster
from tests.e2e.nodes import NodeProcess
from tests.e2e.process import SMALL, DataProcess
from tests.e2e.publishing import Publisher
from tests.kafka import KafkaServer, connector_jars, kafka_server
from tests.postgresql import PostgresqlServer
from tests.s3 import S3Server
from tests.s3 import connector_jars as s3_jars
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.slices.assignment import slice_by_hash

pytestmark = pytest.mark.process

SLICES: Final = 8
APPLICATION: Final = f"""
CREATE DATASET Reports (id STRING, kind STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO {SLICES} SLICES;
CREATE CONTINUOUS CHANNEL OfKind(wanted STRING) AS SELECT r.id FROM Reports r WHERE r.kind = wanted AND is_new(r);
"""
_SETTINGS: Final = {
    "nodes__share": "true",
    # Long enough for a session to begin with a node that stands still.
    "nodes__silent_seconds": 8,
    "nodes__grace_seconds": 1,
    "nodes__round_seconds": 1,
    # Three Sparks share this machine with other tests.
    "nodes__matching_seconds": 8,
    "spark__master": "local[1]",
}
_PAUSE: Final = 0.05
_HOT: Final = 0.5


class HotPublisher(Publisher):
    """Publishes half of all records for one slice, and some of them again."""

    def __init__(self, server: DataProcess, seed: int) -> None:
        super().__init__(server, Random(seed), _PAUSE)
        self.ids: list[str] = []

    def publish_more(self, client: httpx.Client) -> None:
        new = [self._new() for _ in range(self._chance.randint(1, 20))]
        again = self._chance.choices(self.ids, k=2) if self.ids else []
        self.until_acknowledged(client, "reports", [{"id": one, "kind": "flood"} for one in new + again])
        self.ids += new

    def _new(self) -> str:
        hot = self._chance.random() < _HOT
        while True:
            made = f"r{self._chance.getrandbits(60):x}"
            if not hot or slice_by_hash(made, SLICES) == 0:
                return made


class Sharing:
    """A data cluster and two workers; ``own`` are settings that only one of these has."""

    def __init__(self, head: DataProcess, directory: Path, own: Mapping[str, Mapping[str, object]]) -> None:
        self.head = head
        url = f"http://127.0.0.1:{head.port}"
        of_spark = {key: value for key, value in head.settings.items() if key.startswith("spark.")}
        settings = {**SMALL, **of_spark, "worker.scratch": directory}
        self.nodes = {
            name: NodeProcess(name, url, directory / name, {**settings, **own.get(name, {})}) for name in ("n1", "n2")
        }

    def figures(self) -> dict[str, Any]:
        """All that is known of the feed's slices."""
        feeds = self.head.client.get("/slices").json()["feeds"]
        return dict(next(feed for feed in feeds if feed["feed"] == "reports"))

    def owners(self) -> Counter[str | None]:
        """How many slices each has."""
        return Counter(one["owner"] for one in self.figures()["slices"])

    def wait(self, condition: Callable[[Counter[str | None]], bool], what: str) -> None:
        """Waits until every slice has an owner, and who has how many is as it should be."""

        def met() -> bool:
            owners = self.owners()
            return sum(owners.values()) == SLICES and not owners[None] and condition(owners)

        try:
            self.head.until(met, what)
        except AssertionError as error:
            logs = "\n".join(f"{name}:\n{node.tail()}" for name, node in self.nodes.items())
            raise AssertionError(f"{error}\n{self.figures()}\n{logs}") from None

    def wait_connected(self, *names: str) -> None:
        """The head knows these, and does not miss them."""

        def connected() -> bool:
            return {node["name"] for node in self.figures()["nodes"] if node["state"] != "lost"} >= set(names)

        self.head.until(connected, f"connections of {names}")

    def spread(self) -> None:
        """All have slices, though one of them has half of everything: who is new got its share."""
        self.wait_connected("n1", "n2")
        self.wait(lambda owners: set(owners) == {"data", "n1", "n2"}, "slices of the data cluster, n1 and n2")

    def wait_matched(self) -> None:
        """While records come, executions are computed by nodes, of which each has some of the records."""
        self.head.until(lambda: self.head.channels()["OfKind"]["by_nodes"] > 0, "an execution by nodes")

    def told(self) -> list[str]:
        """The ids in all results."""
        return [row["id"] for result in self.head.results("OfKind") for row in result["payload"]]

    def drain(self, node: str, on: bool = True) -> None:
        """Moves all slices from a node, or lets it have some again."""
        answer = self.head.client.put(f"/nodes/{node}/draining", json={"on": on})
        assert answer.status_code == 200, answer.text

    def hold_in_session(self, *drained: str, held: str) -> None:
        """Drains nodes, and has a session stand still in the middle: one of its two nodes does not go on."""
        self.nodes[held].signal(signal.SIGSTOP)
        for node in drained:
            self.drain(node)

        def moves() -> bool:
            return any(one["taker"] and held in (one["owner"], one["taker"]) for one in self.figures()["slices"])

        self.head.until(moves, f"a session of {held}")


@contextmanager
def sharing(
    head: DataProcess,
    directory: Path,
    application: str = APPLICATION,
    own: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> Iterator[Sharing]:
    head.start()
    made = Sharing(head, directory, own)
    try:
        for node in made.nodes.values():
            node.start()
        head.wait_ready()
        head.apply(application)
        yield made
    finally:
        for node in made.nodes.values():
            node.close()


def live_through_everything(made: Sharing, restart_store: Callable[[], None]) -> None:
    """Giver, taker and head die in the middle of a session, a node sleeps and wakes, one leaves."""
    head, n1, n2 = made.head, made.nodes["n1"], made.nodes["n2"]
    made.spread()
    made.wait_matched()

    made.hold_in_session("n1", held="n1")
    n1.kill()
    made.wait(lambda owners: not owners["n1"], "owners of what the giver had")
    made.drain("n1", False)
    n1.start()
    made.spread()

    # Nobody but n1 can take anything.
    made.hold_in_session("n2", "data", held="n1")
    n1.kill()
    made.drain("data", False)
    made.wait(lambda owners: set(owners) == {"data"}, "slices of the data cluster alone")
    assert n2.wait() == 0, n2.tail()
    n1.start()
    made.drain("n2", False)
    n2.start()
    made.spread()

    made.hold_in_session("n1", held="n1")
    head.kill()
    n1.signal(signal.SIGCONT)
    head.start()
    if n1.has_ended:
        n1.start()
    made.spread()
    # It counts from its start, and has told nodes of the channel by itself.
    made.wait_matched()

    restart_store()

    n2.signal(signal.SIGSTOP)
    made.wait(lambda owners: not owners["n2"], "owners of what the sleeper had")
    n2.signal(signal.SIGCONT)
    made.spread()

    n1.signal(signal.SIGTERM)
    assert n1.wait() == 0, n1.tail()
    made.wait(lambda owners: not owners["n1"], "owners of what the leaver had")


def move_without_database(made: Sharing, publisher: HotPublisher, database: PostgresqlServer) -> None:
    """The database dies in the middle of a session: slices move while it is away, records are stored and found."""
    head, n1 = made.head, made.nodes["n1"]
    made.drain("n1")
    database.stop(signal.SIGKILL)
    try:
        made.wait(lambda owners: not owners["n1"], "owners of what the giver had, without a database")
        accepted = len(publisher.ids)
        head.until(lambda: len(publisher.ids) > accepted, "records that are accepted without a database")
        told = len(made.told())
        head.until(lambda: len(made.told()) > told, "results without a database")
    finally:
        database.start()
    assert n1.wait() == 0, n1.tail()
    made.drain("n1", False)
    n1.start()
    made.spread()
    # It dies together with a node.
    database.stop(signal.SIGKILL)
    n1.kill()
    database.start()
    made.wait(lambda owners: not owners["n1"], "owners of what the dead had")
    n1.start()
    made.spread()


def judge(made: Sharing, publisher: HotPublisher, lake: Folder) -> None:
    """Every accepted record is in the dataset once, and whoever subscribed was told of it once."""
    publisher.finish()
    assert publisher.fault == ""
    made.head.wait_drained()
    stored = DeltaTable(**lake.below("datasets/Reports").delta).to_pyarrow_table(columns=["id"])["id"]
    assert sorted(stored.to_pylist()) == sorted(publisher.ids)
    assert sum(made.owners().values()) == SLICES
    assert None not in made.owners()
    made.head.until(lambda: len(made.told()) >= len(publisher.ids), "results of all records")
    assert sorted(made.told()) == sorted(publisher.ids)


def test_nobodys_death_loses_or_repeats_a_record(cluster: Cluster, tmp_path: Path) -> None:
    with sharing(cluster(**_SETTINGS), tmp_path) as made:
        made.head.subscribe("OfKind", [{"wanted": "flood"}])
        publisher = HotPublisher(made.head, seed=15)
        publisher.start()
        live_through_everything(made, lambda: None)
        judge(made, publisher, DirectoryFolder(made.head.directory))


def test_nobodys_death_loses_or_repeats_a_record_with_the_state_in_postgresql(
    cluster: Cluster, tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    with sharing(cluster(**_SETTINGS, data__state=postgresql.database()), tmp_path) as made:
        made.head.subscribe("OfKind", [{"wanted": "flood"}])
        publisher = HotPublisher(made.head, seed=19)
        publisher.start()
        live_through_everything(made, lambda: move_without_database(made, publisher, postgresql))
        judge(made, publisher, DirectoryFolder(made.head.directory))
        assert not (made.head.directory / "state.sqlite").exists()


def test_workers_that_are_not_needed_end_with_status_0(cluster: Cluster, tmp_path: Path) -> None:
    elastic = {**_SETTINGS, "nodes__elastic": "true", "nodes__elastic_seconds": 3}
    with sharing(cluster(**elastic), tmp_path) as made:
        publisher = HotPublisher(made.head, seed=17)
        publisher.start()
        made.head.until(lambda: len(publisher.ids) > 100, "records")
        publisher.finish()
        for node in made.nodes.values():
            assert node.wait() == 0, node.tail()
        made.wait(lambda owners: set(owners) == {"data"}, "slices of the data cluster alone")
        assert made.head.health()["details"]["nodes"]["elastic"]
        made.head.wait_drained()
        table = DeltaTable(str(made.head.directory / "datasets" / "Reports")).to_pyarrow_table(columns=["id"])
        assert sorted(table["id"].to_pylist()) == sorted(publisher.ids)


@pytest.mark.kafka
def test_nobodys_death_loses_or_repeats_a_record_of_a_log_in_kafka(cluster: Cluster, tmp_path: Path) -> None:
    with kafka_server() as kafka:
        log = f"kafka://{kafka.servers}/{kafka.prefix()}"
        settings = {"feeds__log": log, "spark__extra": f'{{ "spark.jars" = "{connector_jars()}" }}'}
        with sharing(cluster(**_SETTINGS, **settings), tmp_path) as made:
            made.head.subscribe("OfKind", [{"wanted": "flood"}])
            publisher = HotPublisher(made.head, seed=16)
            publisher.start()
            live_through_everything(made, lambda: restart(kafka))
            judge(made, publisher, DirectoryFolder(made.head.directory))


@pytest.mark.kafka
@pytest.mark.s3
@pytest.mark.parametrize("engines", ["s3", "s3, kafka, postgresql"])
def test_nobodys_death_loses_or_repeats_a_record_of_a_lake_in_s3(
    cluster: Cluster,
    tmp_path: Path,
    s3: S3Server,
    postgresql: PostgresqlServer,
    monkeypatch: pytest.MonkeyPatch,
    engines: str,
) -> None:
    for name, value in s3.variables.items():
        monkeypatch.setenv(name, value)
    lake, jars = s3.folder(), f"{connector_jars()},{s3_jars()}"
    settings = {"lake__location": lake.url, "spark__extra": f'{{ "spark.jars" = "{jars}" }}'}
    with ExitStack() as stack:
        if engines != "s3":
            kafka = stack.enter_context(kafka_server())
            settings["feeds__log"] = f"kafka://{kafka.servers}/{kafka.prefix()}"
            settings["data__state"] = postgresql.database()
        made = stack.enter_context(sharing(cluster(**_SETTINGS, **settings), tmp_path))
        made.head.subscribe("OfKind", [{"wanted": "flood"}])
        publisher = HotPublisher(made.head, seed=17)
        publisher.start()

        def restart_all() -> None:
            restart(s3)
            if engines != "s3":
                restart(kafka)
                move_without_database(made, publisher, postgresql)

        live_through_everything(made, restart_all)
        judge(made, publisher, lake)
        assert not (made.head.directory / "datasets").exists()


def test_a_feeds_function_runs_at_the_nodes_that_allow_it_and_loses_nothing_of_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    allowed = f'["{functions.__name__}"]'
    application = APPLICATION.replace(" SLICES;", f" SLICES PROCESSED BY '{functions.__name__}:picky';")
    head = cluster(**_SETTINGS, feeds__functions=allowed)
    with sharing(head, tmp_path, application, {"n1": {"feeds.functions": allowed}}) as made:
        # n2 may not, and says so.
        head.until(lambda: "n2" in made.figures()["declined"], "word of n2")
        assert "are not allowed here" in made.figures()["declined"]["n2"]
        kinds, chance = dict[str, str](), Random(18)
        publish(made, kinds, chance)
        wait_publishing(made, kinds, chance, "slices of the data cluster and n1")
        publish(made, kinds, chance)
        made.nodes["n1"].kill()
        publish(made, kinds, chance)
        made.wait(lambda owners: set(owners) == {"data"}, "slices of the data cluster alone")
        made.nodes["n1"].start()
        wait_publishing(made, kinds, chance, "slices of n1 again")
        publish(made, kinds, chance)
        made.head.wait_drained()
        stored = column(head.directory / "datasets" / "Reports", "id")
        assert sorted(stored) == sorted(one for one, kind in kinds.items() if kind == "flood")
        dead = [json.loads(line)["id"] for line in column(head.directory / "dead-letters" / "reports", "line")]
        assert sorted(dead) == sorted(one for one, kind in kinds.items() if kind in ("broken", "deadly"))


def column(table: Path, name: str) -> list[str]:
    """What a table has in a column."""
    return list(DeltaTable(str(table)).to_pyarrow_table(columns=[name])[name].to_pylist())


def wait_publishing(made: Sharing, kinds: dict[str, str], chance: Random, what: str) -> None:
    """Waits until n1 has slices, too. They are moved for what comes for them, so something does until then."""

    def met(owners: Counter[str | None]) -> bool:
        publish(made, kinds, chance, requests=1, trouble=0.0)
        return set(owners) == {"data", "n1"}

    made.wait(met, what)


def publish(made: Sharing, kinds: dict[str, str], chance: Random, requests: int = 30, trouble: float = 0.2) -> None:
    """Publishes some records, of which a few are trouble for the function."""
    for _ in range(requests):
        new = {f"r{chance.getrandbits(60):x}": "flood" for _ in range(5)}
        if chance.random() < trouble:
            new[f"x{chance.getrandbits(60):x}"] = chance.choice(("broken", "deadly", "dull"))
        kinds.update(new)
        lines = "\n".join(json.dumps({"id": one, "kind": kind}) for one, kind in new.items())
        assert made.head.publish("reports", lines.encode()).status_code == 200


def restart(server: KafkaServer | S3Server) -> None:
    """A server dies, and comes back."""
    server.stop(signal.SIGKILL)
    server.start()
