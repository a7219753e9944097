from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from tocsin.errors import ConflictError, SettingsError, StorageError, UnavailableError
from tocsin.local.network import COORDINATOR, DATA, LocalNetwork, occupy
from tocsin.settings import BrokerSettings, CoordinatorSettings, DataSettings, Settings, load

ANYWHERE = Settings(data=DataSettings(port=0), coordinator=CoordinatorSettings(port=0), broker=BrokerSettings(port=0))


def test_every_part_has_a_port_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    network = LocalNetwork(ANYWHERE, tmp_path, 3)
    assert len(set(network.ports.values())) == 5
    assert network.ports is network.ports


def test_brokers_take_the_port_of_the_settings_and_those_after_it(tmp_path: Path) -> None:
    first = _free_run(3)
    settings = Settings(
        data=DataSettings(port=0), coordinator=CoordinatorSettings(port=0), broker=BrokerSettings(port=first)
    )
    network = LocalNetwork(settings, tmp_path, 3)
    assert [network.ports[name] for name in network.names] == [first, first + 1, first + 2]


def test_a_port_that_is_taken_is_said_with_the_part_that_wants_it(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = Settings(data=DataSettings(port=0), coordinator=CoordinatorSettings(port=other.getsockname()[1]))
        with pytest.raises(UnavailableError, match=r"^coordinator: cannot listen on 127.0.0.1, port \d+: .*tocsin up"):
            LocalNetwork(settings, tmp_path, 1).choose_ports()


def test_an_address_that_others_can_reach_is_refused(tmp_path: Path) -> None:
    settings = Settings(data=DataSettings(port=0, host="0.0.0.0"))
    with pytest.raises(SettingsError, match=r"0\.0\.0\.0 can be reached from other machines"):
        LocalNetwork(settings, tmp_path, 1).choose_ports()


def test_the_settings_of_each_part_are_allowed_and_lead_to_the_others(tmp_path: Path) -> None:
    network = LocalNetwork(ANYWHERE, tmp_path, 2, of_brokers=[{"broker.location": [1.0, 2.0]}, {}])
    first, second = (_settings(part.settings).broker for part in network.broker_parts())
    assert (first.name, first.location, second.name, second.location) == ("broker-1", [1.0, 2.0], "broker-2", [])
    assert (first.coordinator, first.data) == (network.url(COORDINATOR), network.url(DATA))
    assert _settings(network.data().settings).data.directory == tmp_path / "data"
    coordinator = _settings(network.coordinator().settings).coordinator
    assert (coordinator.directory, coordinator.registration) == (tmp_path / "coordinator", "open")


def test_a_persons_options_reach_every_part_and_its_own_settings_win(tmp_path: Path) -> None:
    network = LocalNetwork(ANYWHERE, tmp_path, 1, ["--set=broker.port=1", "--set=log.level=debug"])
    [part] = network.broker_parts()
    flags = [flag.removeprefix("--set=") for flag in part.arguments if flag.startswith("--set=")]
    settings = load(overrides=flags, environ={})
    assert (settings.log.level, settings.broker.port) == ("debug", network.ports["broker-1"])


def test_a_directory_is_occupied_by_one_at_a_time(tmp_path: Path) -> None:
    with (
        occupy(tmp_path / "up"),
        pytest.raises(ConflictError, match=f"the local network at .*up is being written by process {os.getpid()}"),
        occupy(tmp_path / "up"),
    ):
        pass
    with occupy(tmp_path / "up"):
        pass


@pytest.mark.parametrize("section", ["data", "coordinator", "broker"])
def test_settings_with_a_certificate_are_refused_before_parts_wait_for_each_other_in_vain(
    tmp_path: Path, section: str
) -> None:
    sections = {"data": DataSettings, "coordinator": CoordinatorSettings, "broker": BrokerSettings}
    given = {section: sections[section](port=0, tls_certificate="here.pem", tls_key="here.key")}
    with pytest.raises(SettingsError, match=r"here\.pem"):
        LocalNetwork(replace(ANYWHERE, **given), tmp_path, 1).choose_ports()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StorageError, match="cannot be used: Not a directory; choose another"),
        occupy(tmp_path / "file/x"),
    ):
        pass


def _settings(settings: object) -> Settings:
    assert isinstance(settings, dict)
    return load(overrides=[f"{key}={value}" for key, value in settings.items()], environ={})


def _free_run(count: int) -> int:
    """The first of so many free ports in a row."""
    for first in range(20_000, 30_000, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for number, probe in enumerate(sockets):
                probe.bind(("127.0.0.1", first + number))
        except OSError:
            continue
        else:
            return first
        finally:
            for probe in sockets:
                probe.close()
    raise AssertionError("no free ports")
