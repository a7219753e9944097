"""What a whole Tocsin on this machine consists of: one data cluster, one coordinator, and brokers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tocsin.errors import SettingsError, StorageError, UnavailableError
from tocsin.http.listening import bind, is_loopback
from tocsin.local.part import Part, StartStep
from tocsin.lock import take_lock
from tocsin.settings import Settings

# Known to everyone, so its parts listen on this machine alone.
TOKEN: Final = "demo"
DATA: Final = "data"
COORDINATOR: Final = "coordinator"
_LOCK: Final = "lock"
# An execution of a channel that is under way is waited for.
DATA_STOP_SECONDS: Final = 60.0
# Spark starts in ten seconds on an idle machine; on one that is busy with all the others it takes its time.
DATA_READY_SECONDS: Final = 300.0


@dataclass(frozen=True)
class LocalNetwork:
    """The parts, their addresses and their settings.

    Args:
        settings: hosts and ports are taken from here; a port of 0 takes any free one. Brokers take ``broker.port`` and
            those after it.
        directory: where their state and logs are.
        brokers: how many.
        options: options of ``tocsin`` for all of them, such as ``--set=log.level=debug``.
        of_data, of_coordinator, of_brokers: settings by dotted name, besides those that connect the parts.
            ``of_brokers`` has one for each broker, or is empty.
    """

    settings: Settings
    directory: Path
    brokers: int
    options: Sequence[str] = ()
    of_data: Mapping[str, object] = field(default_factory=dict)
    of_coordinator: Mapping[str, object] = field(default_factory=dict)
    of_brokers: Sequence[Mapping[str, object]] = ()

    @cached_property
    def ports(self) -> dict[str, int]:
        """The port of each part, chosen when first asked for."""
        return self.choose_ports()

    def choose_ports(self) -> dict[str, int]:
        """Ports that are free at this moment; UnavailableError, with the part's name, when one is taken."""
        for section in (self.settings.data, self.settings.coordinator, self.settings.broker):
            _refuse_open(section.host)
        refuse_tls(self.settings)
        first = self.settings.broker.port
        wanted = {DATA: self.settings.data.port, COORDINATOR: self.settings.coordinator.port}
        wanted |= {name: first and first + number for number, name in enumerate(self.names)}
        with ExitStack() as held:
            # All are held until all are known, so that no two are given the same free one.
            return {name: _free(held, name, self._host(name), port) for name, port in wanted.items()}

    @property
    def names(self) -> list[str]:
        """The names of the brokers."""
        return [f"broker-{number}" for number in range(1, self.brokers + 1)]

    def url(self, name: str) -> str:
        """Where a part answers."""
        host = self._host(name)
        return f"http://[{host}]:{self.ports[name]}" if ":" in host else f"http://{host}:{self.ports[name]}"

    @property
    def token(self) -> str:
        """With which parts are asked how they are."""
        return TOKEN

    @property
    def groups(self) -> list[list[Part]]:
        """The parts, in the order in which they are needed."""
        return [[self.data()], [self.coordinator()], self.broker_parts()]

    @property
    def steps(self) -> list[StartStep]:
        """Brokers begin when there is something to connect to; Spark, the slowest, is waited for last."""
        brokers = f"Starting {self.brokers} broker{'s' if self.brokers > 1 else ''}"
        return [
            StartStep("Starting the coordinator", (DATA, COORDINATOR), (COORDINATOR,)),
            StartStep(brokers, self.names, self.names),
            StartStep("Starting the data cluster, on Spark", (), (DATA,)),
        ]

    @property
    def parting(self) -> str:
        """What is said while all are stopped."""
        return "Stopping the brokers, the coordinator and the data cluster"

    def data(self) -> Part:
        """The data cluster."""
        settings = {"data.port": self.ports[DATA], "data.directory": self.directory / DATA, **self.of_data}
        part = self._part(DATA, (DATA, "--demo-token"), settings)
        return replace(part, needs_spark=True, ready_seconds=DATA_READY_SECONDS, stop_seconds=DATA_STOP_SECONDS)

    def coordinator(self) -> Part:
        """The coordinator, with which anyone on this machine may register."""
        settings = {
            "coordinator.port": self.ports[COORDINATOR],
            "coordinator.directory": self.directory / COORDINATOR,
            "coordinator.registration": "open",
            **self.of_coordinator,
        }
        return self._part(COORDINATOR, (COORDINATOR, "--demo-token"), settings)

    def broker_parts(self) -> list[Part]:
        """The brokers."""
        return [self._broker(number, name) for number, name in enumerate(self.names)]

    def _broker(self, number: int, name: str) -> Part:
        settings = {
            "broker.name": name,
            "broker.port": self.ports[name],
            "broker.coordinator": self.url(COORDINATOR),
            "broker.data": self.url(DATA),
            "broker.token": TOKEN,
            "broker.data_token": TOKEN,
            **(self.of_brokers[number] if self.of_brokers else {}),
        }
        return self._part(name, ("broker",), settings)

    def _part(self, name: str, command: tuple[str, ...], settings: Mapping[str, object]) -> Part:
        log = self.directory / "log" / f"{name}.log"
        every = {"log.format": "text", **settings}
        return Part(name, command, self.url(name), log, tuple(self.options), every)

    def _host(self, name: str) -> str:
        hosts = {DATA: self.settings.data.host, COORDINATOR: self.settings.coordinator.host}
        return hosts.get(name, self.settings.broker.host)


@contextmanager
def occupy(directory: Path, option: str = "--directory") -> Iterator[None]:
    """While entered, nobody else runs a network on this directory, which is made when missing.

    ``option`` is the one by which a person chose it. Raises StorageError when it cannot be made, and ConflictError
    when somebody does.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = take_lock(directory / _LOCK, "the local network")
    except OSError as error:
        raise StorageError(f"{directory} cannot be used: {error.strerror}; choose another with {option}") from None
    try:
        yield
    finally:
        os.close(lock)


def _refuse_open(host: str) -> None:
    if not is_loopback(host):
        raise SettingsError(
            f"a local network takes a token that everybody knows, and {host} can be reached from other machines: "
            "leave the host settings at 127.0.0.1, or start 'tocsin data', 'coordinator' and 'broker' by themselves"
        )


def refuse_tls(settings: Settings) -> None:
    """SettingsError if a part is to listen with a certificate."""
    for section in (settings.data, settings.coordinator, settings.broker):
        if section.tls_certificate:
            raise SettingsError(
                "the parts of a local network speak to each other without TLS, on this machine alone: leave the "
                f"certificate {section.tls_certificate} to 'tocsin data', 'coordinator' and 'broker', started by "
                "themselves"
            )


def _free(held: ExitStack, name: str, host: str, port: int) -> int:
    section = name if name in (DATA, COORDINATOR) else "broker"
    try:
        listener = held.enter_context(bind(section, host, port))
    except UnavailableError as error:
        raise UnavailableError(f"{name}: {error}. If another 'tocsin up' runs here, end that first") from None
    return int(listener.getsockname()[1])
