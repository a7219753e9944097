"""What runs on which host, and what it is told of the others; nothing is started here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tocsin.local.cluster import STANDBY, ClusterNetwork, ClusterTokens, broker_names
from tocsin.local.hosts import Hosts
from tocsin.local.infrastructure import KAFKA, MASTER, POSTGRESQL, Infrastructure, spark_workers
from tocsin.local.network import COORDINATOR, DATA
from tocsin.settings import Settings, load

WORKERS, BROKERS = 2, 3
BROKERS_TOKENS = {name: (f"{name}-1", f"{name}-2") for name in broker_names(BROKERS)}
TOKENS = ClusterTokens("of-data", "of-coordinator", BROKERS_TOKENS, {"node-1": "of-node-1"})


def network(directory: Path, *more: str) -> ClusterNetwork:
    """One with hosts for what it needs, and more."""
    names = [MASTER, *spark_workers(WORKERS), DATA, COORDINATOR, *broker_names(BROKERS), *more]
    below = Infrastructure(Hosts(names), directory, directory / "database", WORKERS)
    return replace(ClusterNetwork(below, directory, BROKERS), tokens=TOKENS)


def settings(network: ClusterNetwork, name: str) -> Settings:
    """Those of a part, as it reads them."""
    [part] = [part for group in network.groups for part in group if part.name == name]
    return load(overrides=[f"{key}={value}" for key, value in part.settings.items()], environ=part.environment)


def test_each_part_listens_on_its_own_host_and_runs_there(tmp_path: Path) -> None:
    net = network(tmp_path, STANDBY)
    listening = {name: settings(net, name).data.host for name in (DATA, STANDBY)}
    listening |= {COORDINATOR: settings(net, COORDINATOR).coordinator.host}
    listening |= {name: settings(net, name).broker.host for name in broker_names(BROKERS)}
    assert len(set(listening.values())) == len(listening)
    for part in (part for group in net.groups for part in group):
        assert listening[part.name] == net.hosts.address(part.name)
        assert part.arguments[: len(net.hosts.on(part.name))] == list(net.hosts.on(part.name))


def test_the_data_cluster_runs_on_the_spark_cluster_and_executors_find_it(tmp_path: Path) -> None:
    net = network(tmp_path)
    spark = settings(net, DATA).spark
    assert spark.master == f"spark://{net.hosts.address(MASTER)}:7077"
    assert spark.extra["spark.driver.host"] == net.hosts.address(DATA)


def test_without_hosts_for_them_state_and_log_are_files(tmp_path: Path) -> None:
    data, coordinator = (settings(network(tmp_path), name) for name in (DATA, COORDINATOR))
    assert (data.data.state, data.feeds.log, coordinator.coordinator.store) == ("", "embedded", "")


def test_with_hosts_for_them_state_is_in_the_database_and_the_log_in_kafka(tmp_path: Path) -> None:
    net = network(tmp_path, POSTGRESQL, KAFKA)
    data, coordinator = (settings(net, name) for name in (DATA, COORDINATOR))
    database = f"postgresql://postgres@{net.hosts.address(POSTGRESQL)}:5432/postgres"
    assert (data.data.state, coordinator.coordinator.store) == (database, database)
    assert data.feeds.log == f"kafka://{net.hosts.address(KAFKA)}:9092/tocsin"


def test_brokers_are_told_of_all_data_clusters_and_have_tokens_that_no_command_line_shows(tmp_path: Path) -> None:
    net = network(tmp_path, STANDBY)
    for name in broker_names(BROKERS):
        broker = settings(net, name).broker
        assert broker.data == f"{net.url(DATA)},{net.url(STANDBY)}"
        assert (broker.token, broker.data_token) == (f"{name}-1", f"{name}-2")
    shown = " ".join(word for group in net.groups for part in group for word in part.arguments)
    assert not [token for pair in TOKENS.of_brokers.values() for token in pair if token in shown]


def test_only_one_that_has_another_beside_it_stands_by(tmp_path: Path) -> None:
    alone, first, second = network(tmp_path).groups[0] + network(tmp_path, STANDBY).groups[0]
    assert [part.stands_by for part in (alone, first, second)] == [False, True, True]
    assert [part.command for part in (alone, first, second)] == [
        ("data",),
        ("data", "--standby"),
        ("data", "--standby"),
    ]


def test_a_processing_node_knows_all_heads_by_a_token_that_no_command_line_shows(tmp_path: Path) -> None:
    alone, shared = network(tmp_path), replace(network(tmp_path, STANDBY, "node-1"), nodes=1)
    assert (settings(alone, DATA).nodes.share, settings(shared, DATA).nodes.share) == ("auto", True)
    node = settings(shared, "node-1").worker
    assert (node.name, node.token) == ("node-1", "of-node-1")
    assert node.head == f"{shared.url(DATA)},{shared.url(STANDBY)}"
    assert shared.url("node-1") == f"http://{node.host}:{node.port}"
    assert not [word for group in shared.groups for part in group for word in part.arguments if "of-node-1" in word]
