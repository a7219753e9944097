"""The compose file names images that are built, settings that exist, volumes and services that are there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.deploy.files import DEPLOY, check_command, defaulted, documents, settings_from, targets
from tests.pages import ROOT
from tocsin.settings import load

[COMPOSE] = documents(DEPLOY / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = defaulted(COMPOSE["services"])
TARGETS = targets()
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("tocsin-")}
BROKERS = {name: service for name, service in OURS.items() if service["image"] == "tocsin-broker"}
TOKENS = {name: service for name, service in OURS.items() if name.endswith(("-tokens", "-token"))}
WORKERS = {name: service for name, service in OURS.items() if service.get("command") == ["tocsin", "worker"]}
HEADS = {name: service for name, service in OURS.items() if service.get("command", [])[:2] == ["tocsin", "data"]}


def _ports(service: dict[str, Any]) -> list[tuple[int, int]]:
    parts = [port.split(":") for port in service.get("ports", [])]
    assert all(address == "127.0.0.1" for address, _, _ in parts)
    return [(int(outside), int(inside)) for _, outside, inside in parts]


@pytest.mark.parametrize("name", OURS)
def test_an_image_is_built_by_the_target_of_its_name(name: str) -> None:
    service = OURS[name]
    target = service["image"].removeprefix("tocsin-")
    assert target in TARGETS
    assert service["build"] == {"context": "..", "dockerfile": "deploy/Dockerfile", "target": target}
    check_command(service.get("command", TARGETS[target].command))


@pytest.mark.parametrize("name", OURS)
def test_variables_are_settings(name: str) -> None:
    settings = settings_from(OURS[name]["environment"])
    if name in BROKERS:
        assert (settings.broker.coordinator, settings.broker.data) == ("http://coordinator:8700", "http://data:8800")
    elif name in WORKERS:
        assert (settings.worker.name, settings.worker.head) == (name, "http://data:8800")
    else:
        assert settings.coordinator.store == settings.data.state == "postgresql://tocsin@postgresql/tocsin"
        assert OURS[name]["environment"]["PGPASSWORD"] == SERVICES["postgresql"]["environment"]["POSTGRES_PASSWORD"]


@pytest.mark.parametrize("name", sorted(set(OURS) - set(TOKENS) - set(WORKERS)))
def test_ports_are_those_of_the_image_and_open_to_this_machine_alone(name: str) -> None:
    [(_, inside)] = _ports(OURS[name])
    assert {inside} == TARGETS[OURS[name]["image"].removeprefix("tocsin-")].ports


def test_a_broker_is_found_at_the_port_it_has_outside() -> None:
    assert len(BROKERS) == 3
    for name, service in BROKERS.items():
        [(outside, _)] = _ports(service)
        assert service["environment"]["TOCSIN_BROKER_URL"] == f"ws://localhost:{outside}/subscriber"
        assert service["environment"]["TOCSIN_BROKER_NAME"] == name


def test_a_broker_starts_with_the_tokens_that_were_made_for_it_and_knows_no_password() -> None:
    for name, service in BROKERS.items():
        making = TOKENS[f"{name}-tokens"]
        assert service["depends_on"] == {f"{name}-tokens": {"condition": "service_completed_successfully"}}
        assert making["environment"]["TOCSIN_BROKER_NAME"] == name
        assert making["command"] == ["broker-tokens", service["environment"]["TOCSIN_CONFIG"]]
        assert service["volumes"] == [f"{making['volumes'][0]}:ro"]
        assert "PGPASSWORD" not in service["environment"]


def test_volumes_and_services_that_are_named_exist() -> None:
    named = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert named == set(COMPOSE["volumes"])
    assert {other for service in SERVICES.values() for other in service.get("depends_on", {})} <= set(SERVICES)


def test_what_has_ended_is_started_again() -> None:
    assert {name: service["restart"] for name, service in SERVICES.items()} == {
        name: "on-failure" if name in TOKENS else "unless-stopped" for name in SERVICES
    }


def test_without_profiles_it_is_as_small_as_it_was() -> None:
    small = {name for name, service in SERVICES.items() if "profiles" not in service}
    assert small == {"postgresql", "data", "coordinator", *BROKERS, *(f"{name}-tokens" for name in BROKERS)}
    settings = settings_from(HEADS["data"]["environment"])
    assert (settings.feeds.log, settings.lake.location, settings.nodes.share) == ("embedded", "", "auto")


def test_a_worker_sees_the_data_clusters_directory_has_its_own_token_and_time_to_leave() -> None:
    assert len(WORKERS) == 2
    for name, service in WORKERS.items():
        making = TOKENS[f"{name}-token"]
        assert service["depends_on"] == {f"{name}-token": {"condition": "service_completed_successfully"}}
        assert making["environment"]["TOCSIN_WORKER_NAME"] == name
        assert making["command"] == ["node-token", service["environment"]["TOCSIN_CONFIG"]]
        token, data = service["volumes"]
        assert token == f"{making['volumes'][0]}:ro"
        assert [data] == HEADS["data"]["volumes"]
        assert "PGPASSWORD" not in service["environment"]
        assert service["healthcheck"]["test"] == ["CMD", "healthy", str(service["environment"]["TOCSIN_WORKER_PORT"])]
        assert service["stop_grace_period"] == "90s"


def test_data_clusters_stand_by_for_each_other_on_the_same_directory_and_state() -> None:
    assert set(HEADS) == {"data", "standby"}
    first, second = HEADS.values()
    assert first["command"] == second["command"] == ["tocsin", "data", "--standby"]
    assert (first["environment"], first["volumes"]) == (second["environment"], second["volumes"])


def test_what_the_example_of_an_environment_turns_on_are_profiles_and_settings() -> None:
    lines = (DEPLOY / "env.example").read_text(encoding="utf-8").splitlines()
    given = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?[A-Z0-9_]+=", line))
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", [])}
    assert set(given["COMPOSE_PROFILES"].split(",")) < profiles == {"nodes", "standby", "kafka", "s3"}
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert {name for name in given if f"${{{name}:" not in text} == {"COMPOSE_PROFILES"}
    on = {"FEEDS_LOG": "feeds.log", "NODES_SHARE": "nodes.share", "DATA_URLS": "worker.head"}
    settings = load(overrides=[f"{key}={given[name]}" for name, key in on.items()], environ={})
    assert settings.worker.head == "http://data:8800,http://standby:8800"
    assert settings.nodes.share is True


@pytest.mark.parametrize(
    ("service", "script", "pinned"),
    [
        ("s3", "ensure-s3", r"github\.com/versity/versitygw/cmd/versitygw@v(\S+?);"),
        ("kafka", "ensure-kafka", r"org\.apache\.kafka kafka_2\.13 (\S+)"),
    ],
)
def test_servers_of_others_are_those_that_the_tests_run_on(service: str, script: str, pinned: str) -> None:
    found = re.search(pinned, (ROOT / "scripts" / script).read_text(encoding="utf-8"))
    assert found is not None
    assert SERVICES[service]["image"].rpartition(":")[2].removeprefix("v") == found[1]
