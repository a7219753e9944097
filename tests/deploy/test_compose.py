"""The compose file names images that are built, settings that exist, volumes and services that are there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deploy.files import DEPLOY, check_command, defaulted, documents, settings_from, targets

[COMPOSE] = documents(DEPLOY / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = defaulted(COMPOSE["services"])
TARGETS = targets()
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("tocsin-")}
BROKERS = {name: service for name, service in OURS.items() if service["image"] == "tocsin-broker"}
TOKENS = {name: service for name, service in OURS.items() if name.endswith("-tokens")}


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
    else:
        assert settings.coordinator.store == settings.data.state == "postgresql://tocsin@postgresql/tocsin"
        assert OURS[name]["environment"]["PGPASSWORD"] == SERVICES["postgresql"]["environment"]["POSTGRES_PASSWORD"]


@pytest.mark.parametrize("name", sorted(set(OURS) - set(TOKENS)))
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
