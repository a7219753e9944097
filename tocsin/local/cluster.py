"""A whole Tocsin on several hosts: what a network on this machine consists of, each part with an address of its own.

Parts know each other by real tokens, since whatever listens on an address of a network takes no token that everybody
knows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tocsin.errors import TocsinError
from tocsin.local.hosts import Hosts
from tocsin.local.infrastructure import JAVA_OPTIONS, Infrastructure
from tocsin.local.network import COORDINATOR, DATA, DATA_READY_SECONDS, DATA_STOP_SECONDS
from tocsin.local.part import READY_SECONDS, Part, StartStep
from tocsin.settings import Settings

T = TypeVar("T")

STANDBY: Final = "standby"
_PORTS: Final = {DATA: 8800, STANDBY: 8800, COORDINATOR: 8700}
_BROKER_PORT: Final = 8701
_NODE_PORT: Final = 8801
_AGAIN_SECONDS: Final = 0.2
_WHO: Final = "operator"


class ClusterTokens(msgspec.Struct, frozen=True):
    """Tokens of a network: an administrator's of the data cluster and an operator's of the coordinator, both of each
    broker, and the data cluster's of each processing node."""

    data: str
    coordinator: str
    of_brokers: Mapping[str, tuple[str, str]]
    of_nodes: Mapping[str, str]


def broker_names(brokers: int) -> list[str]:
    """The names of so many brokers."""
    return [f"broker-{number}" for number in range(1, brokers + 1)]


def node_names(nodes: int) -> list[str]:
    """The names of so many processing nodes."""
    return [f"node-{number}" for number in range(1, nodes + 1)]


@dataclass(frozen=True)
class ClusterNetwork:
    """The parts, each on the host of its name. Where there is a host for it, another data cluster stands by.

    Args:
        infrastructure: what they run on.
        directory: where state and logs are; all hosts see it under this path.
        brokers: how many.
        nodes: how many processing nodes share the data cluster's ingestion.
        options: options of ``tocsin`` for all of them.
        of_data, of_coordinator, of_brokers: settings by dotted name, besides those that connect the parts.
            ``of_brokers`` has one for each broker, or is empty.
        of_spark: Spark's own configuration, besides what the cluster needs.
    """

    infrastructure: Infrastructure
    directory: Path
    brokers: int
    options: Sequence[str] = ()
    of_data: Mapping[str, object] = field(default_factory=dict)
    of_coordinator: Mapping[str, object] = field(default_factory=dict)
    of_brokers: Sequence[Mapping[str, object]] = ()
    of_spark: Mapping[str, str] = field(default_factory=dict)
    nodes: int = 0
    tokens: ClusterTokens = field(default_factory=lambda: ClusterTokens("", "", {}, {}))

    @property
    def hosts(self) -> Hosts:
        """Where they are."""
        return self.infrastructure.hosts

    @property
    def names(self) -> list[str]:
        """The names of the brokers."""
        return broker_names(self.brokers)

    @property
    def heads(self) -> list[str]:
        """The names of the data clusters, of which one is active."""
        return [name for name in (DATA, STANDBY) if name in self.hosts.names]

    @property
    def _urls_of_heads(self) -> str:
        return ",".join(map(self.url, self.heads))

    def url(self, name: str) -> str:
        """Where a part answers."""
        others = _NODE_PORT if name in node_names(self.nodes) else _BROKER_PORT
        return f"http://{self.hosts.address(name)}:{_PORTS.get(name, others)}"

    @property
    def token(self) -> str:
        """With which the data cluster is asked how it is."""
        return self.tokens.data

    @property
    def groups(self) -> list[list[Part]]:
        """The parts, in the order in which they are needed."""
        brokers = [self._broker(number, name) for number, name in enumerate(self.names)]
        heads = [self._data(name) for name in self.heads]
        return [heads, [self._coordinator()], [*map(self._node, node_names(self.nodes)), *brokers]]

    @property
    def steps(self) -> list[StartStep]:
        """Brokers and nodes come last: a data cluster that stands by, or is not active yet, lets none of them in."""
        brokers = f"Starting {self.brokers} broker{'s' if self.brokers > 1 else ''}"
        nodes = node_names(self.nodes)
        return [
            StartStep("Starting the coordinator", (DATA, COORDINATOR), (COORDINATOR,)),
            StartStep("Starting the data cluster, on Spark's", (), (DATA,)),
            *(StartStep("Starting another that stands by", (name,), (name,)) for name in self.heads[1:]),
            StartStep(brokers, self.names, self.names),
            *([StartStep(f"Starting {self.nodes} processing nodes", nodes, nodes)] if nodes else []),
        ]

    @property
    def parting(self) -> str:
        """What is said while all are stopped."""
        return "Stopping the brokers, the coordinator and the data cluster"

    def with_tokens(self) -> ClusterNetwork:
        """The same with tokens that its parts know, once its infrastructure runs; to be called on one of the hosts."""
        return replace(self, tokens=_patiently(self._make_tokens))

    def _make_tokens(self) -> ClusterTokens:
        from tocsin.coordinator.store.opening import open_store as open_coordinator
        from tocsin.coordinator.tokens import claims
        from tocsin.data.store import open_store as open_data

        settings = self._settings()
        with open_data(settings.data) as store:
            for name in (_WHO, *self.names, *node_names(self.nodes)):
                store.tokens.revoke(name)
            data = store.tokens.add(_WHO, "admin")
            of_data = {name: store.tokens.add(name, "broker") for name in self.names}
            of_nodes = {name: store.tokens.add(name, "node") for name in node_names(self.nodes)}
        with closing(open_coordinator(settings.coordinator)) as known:
            keyring, until = known.keyring(), time.time() + settings.coordinator.token_seconds
            operator = keyring.sign(claims(_WHO, "operator", until))
            signed = {name: keyring.sign(claims(name, "broker", until)) for name in self.names}
        of_brokers = {name: (signed[name], of_data[name]) for name in self.names}
        return ClusterTokens(data, operator, of_brokers, of_nodes)

    def _settings(self) -> Settings:
        """Where both keep their state."""
        default, store = Settings(), self.infrastructure.store
        return msgspec.structs.replace(
            default,
            data=msgspec.structs.replace(default.data, directory=self.directory / DATA, state=store),
            coordinator=msgspec.structs.replace(
                default.coordinator, directory=self.directory / COORDINATOR, store=store
            ),
        )

    def _data(self, name: str) -> Part:
        address = self.hosts.address(name)
        settings = {
            "data.host": address,
            "data.port": _PORTS[DATA],
            "data.directory": self.directory / DATA,
            "data.state": self.infrastructure.store,
            "feeds.log": self.infrastructure.log,
            "lake.location": self.infrastructure.lake,
            "nodes.share": "true" if self.nodes else "auto",
            "spark.master": self.infrastructure.spark,
            "spark.driver_memory": "1g",
            "spark.extra": _table(self._spark(address)),
            **self.of_data,
        }
        # The name of the machine, which Spark would look up, is not that of the host.
        java = {"SPARK_LOCAL_IP": address, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
        command = (DATA, "--standby") if len(self.heads) > 1 else (DATA,)
        return replace(
            self._part(name, command, settings, **java, **self.infrastructure.variables),
            needs_spark=True,
            stands_by=len(self.heads) > 1,
            ready_seconds=DATA_READY_SECONDS,
            stop_seconds=DATA_STOP_SECONDS,
        )

    def _spark(self, address: str) -> dict[str, str]:
        """What the executors need to reach the driver; and to be no larger than their workers."""
        return {
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.executor.memory": "640m",
            **self.infrastructure.connector,
            **self.of_spark,
        }

    def _coordinator(self) -> Part:
        settings = {
            "coordinator.host": self.hosts.address(COORDINATOR),
            "coordinator.port": _PORTS[COORDINATOR],
            "coordinator.directory": self.directory / COORDINATOR,
            "coordinator.store": self.infrastructure.store,
            "coordinator.registration": "open",
            # All people are on a few hosts here.
            "coordinator.registrations_each": 1_000_000,
            "coordinator.registrations": 1_000_000,
            **self.of_coordinator,
        }
        return self._part(COORDINATOR, (COORDINATOR,), settings)

    def _node(self, name: str) -> Part:
        """A node with a Spark of its own, on its host."""
        address = self.hosts.address(name)
        settings = {
            "worker.name": name,
            "worker.head": self._urls_of_heads,
            "worker.host": address,
            "worker.port": _NODE_PORT,
            "spark.master": "local[1]",
            "spark.driver_memory": "512m",
            "spark.extra": _table(self.infrastructure.connector),
        }
        java = {"SPARK_LOCAL_IP": address, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
        token = self.tokens.of_nodes.get(name, "")
        variables = {"TOCSIN_WORKER_TOKEN": token, **java, **self.infrastructure.variables}
        # It gives its slices away first.
        return replace(self._part(name, ("worker",), settings, **variables), stop_seconds=DATA_STOP_SECONDS)

    def _broker(self, number: int, name: str) -> Part:
        settings = {
            "broker.name": name,
            "broker.host": self.hosts.address(name),
            "broker.port": _BROKER_PORT,
            "broker.coordinator": self.url(COORDINATOR),
            "broker.data": self._urls_of_heads,
            **(self.of_brokers[number] if self.of_brokers else {}),
        }
        signed, of_data = self.tokens.of_brokers.get(name, ("", ""))
        environment = {"TOCSIN_BROKER_TOKEN": signed, "TOCSIN_BROKER_DATA_TOKEN": of_data}
        return self._part(name, ("broker",), settings, **environment)

    def _part(self, name: str, command: tuple[str, ...], settings: Mapping[str, object], **environment: str) -> Part:
        log, every = self.directory / "log" / f"{name}.log", {"log.format": "text", **settings}
        part = Part(name, command, self.url(name), log, tuple(self.options), every)
        # What a part leaves behind that has to be killed goes with the directory.
        variables = {"TMPDIR": str(self.directory), **environment}
        return replace(part, program=(*self.hosts.on(name), *part.program), environment=variables)


def _patiently(make: Callable[[], T]) -> T:
    """A database that takes connections may not answer yet."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return make()
        except TocsinError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_SECONDS)


def _table(values: Mapping[str, str]) -> str:
    """An inline table of TOML."""
    return "{ " + ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items()) + " }"
