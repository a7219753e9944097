"""The manifests agree with the images, with the settings, and with each other."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from tests.deploy.files import DEPLOY, check_command, documents, kustomized, settings_from, targets
from tocsin import __version__
from tocsin.settings import Settings

FOLDER = DEPLOY / "kubernetes"
[KUSTOMIZATION] = documents(FOLDER / "kustomization.yaml")
[SECRET] = documents(FOLDER / "secret.example.yaml")
OBJECTS = [each for name in KUSTOMIZATION["resources"] for each in documents(FOLDER / name)]
WORKLOADS = {each["metadata"]["name"]: each for each in OBJECTS if "template" in each.get("spec", {})}
SERVICES = {each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "Service"}
TARGETS = targets()
DOMAIN = KUSTOMIZATION["configMapGenerator"][0]["literals"][0].removeprefix("DOMAIN=")
POD = "broker-0"


def _pod(workload: str) -> dict[str, Any]:
    pod: dict[str, Any] = WORKLOADS[workload]["spec"]["template"]["spec"]
    return pod


def _containers(workload: str) -> list[dict[str, Any]]:
    return [*_pod(workload).get("initContainers", []), *_pod(workload)["containers"]]


def _named(workload: str, name: str) -> dict[str, Any]:
    return next(each for each in _containers(workload) if each["name"] == name)


def _environment(container: dict[str, Any]) -> dict[str, str]:
    """As Kubernetes makes it: the secret's entries, and variables with earlier ones filled in."""
    made: dict[str, str] = dict(SECRET["stringData"]) if container.get("envFrom") else {}
    for entry in container.get("env", []):
        source = entry.get("valueFrom", {})
        given = POD if "fieldRef" in source else DOMAIN if "configMapKeyRef" in source else entry["value"]
        made[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda found: made[found[1]], given)
    return made


ALL = [(workload, each["name"]) for workload in WORKLOADS for each in _containers(workload)]
SERVING = ["broker", "coordinator", "data"]


def test_every_file_is_used() -> None:
    others = {"kustomization.yaml", "secret.example.yaml"}
    assert {path.name for path in FOLDER.iterdir()} == {*KUSTOMIZATION["resources"], *others}
    assert sorted(WORKLOADS) == SERVING


@pytest.mark.parametrize(("workload", "name"), ALL)
def test_a_container_runs_what_its_image_has_with_settings_that_exist(workload: str, name: str) -> None:
    container = _named(workload, name)
    target = TARGETS[container["image"].removeprefix("tocsin-")]
    check_command(container.get("command", target.command))
    settings_from(_environment(container))
    assert {"memory", "cpu"} <= set(container["resources"]["requests"])


@pytest.mark.parametrize(("workload", "name"), ALL)
def test_a_container_is_without_privileges_and_mounts_what_there_is(workload: str, name: str) -> None:
    container, pod = _named(workload, name), _pod(workload)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    claims = WORKLOADS[workload]["spec"].get("volumeClaimTemplates", [])
    volumes = {each["name"] for each in pod["volumes"]} | {each["metadata"]["name"] for each in claims}
    assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


@pytest.mark.parametrize("workload", SERVING)
def test_a_pod_gets_no_variables_of_services_that_would_be_taken_for_settings(workload: str) -> None:
    assert _pod(workload)["enableServiceLinks"] is False
    assert _pod(workload)["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("workload", SERVING)
def test_probes_and_services_ask_at_the_port_of_the_image(workload: str) -> None:
    container = _named(workload, workload)
    [port] = container["ports"]
    assert {port["containerPort"]} == TARGETS[workload].ports
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": port["name"]}
    assert container["livenessProbe"]["tcpSocket"] == {"port": port["name"]}
    service = SERVICES["brokers" if workload == "broker" else workload]
    assert service["selector"] == WORKLOADS[workload]["spec"]["template"]["metadata"]["labels"]
    assert service["ports"] == [{"name": "http", "port": port["containerPort"], "targetPort": port["name"]}]


def test_brokers_dial_the_services_and_are_found_at_a_host_of_their_own() -> None:
    broker = settings_from(_environment(_named("broker", "broker"))).broker
    assert broker.name == POD
    assert broker.url == f"wss://{POD}.{DOMAIN}/subscriber"
    assert broker.coordinator == "http://coordinator:8700"
    assert broker.data == "http://data:8800"
    assert _environment(_named("broker", "drain"))["TOCSIN_COORDINATOR"] == broker.coordinator


def test_every_broker_has_a_host_and_a_service() -> None:
    [ingress] = [each["spec"] for each in OBJECTS if each["kind"] == "Ingress"]
    backends = {
        rule["host"]: path["backend"]["service"]["name"] for rule in ingress["rules"] for path in rule["http"]["paths"]
    }
    brokers = [f"broker-{number}" for number in range(WORKLOADS["broker"]["spec"]["replicas"])]
    assert backends == {DOMAIN: "coordinator", f"data.{DOMAIN}": "data"} | {f"{b}.{DOMAIN}": b for b in brokers}
    assert ingress["tls"][0]["hosts"] == [DOMAIN, f"*.{DOMAIN}"]
    for name in brokers:
        assert SERVICES[name]["selector"] == {"statefulset.kubernetes.io/pod-name": name}


def test_only_one_of_those_that_keep_state_runs_at_a_time() -> None:
    assert WORKLOADS["coordinator"]["spec"]["strategy"] == {"type": "Recreate"}
    assert [WORKLOADS[name]["spec"]["replicas"] for name in ("coordinator", "data")] == [1, 1]
    [claim] = WORKLOADS["data"]["spec"]["volumeClaimTemplates"]
    directory = settings_from(TARGETS["data"].environment).data.directory
    mounts = {mount["name"]: mount["mountPath"] for mount in _named("data", "data")["volumeMounts"]}
    assert directory.is_relative_to(mounts[claim["metadata"]["name"]])


def test_a_broker_is_stopped_when_it_is_drained_and_one_at_a_time() -> None:
    wait, drain = _named("broker", "broker")["lifecycle"]["preStop"]["exec"]["command"], _named("broker", "drain")
    done = drain["command"][2]
    assert f"[ -e {done} ]" in wait[-1]
    patience = int(wait[1])
    assert int(_environment(drain)["DRAIN_SECONDS"]) < patience < _pod("broker")["terminationGracePeriodSeconds"] - 10
    [budget] = [each["spec"] for each in OBJECTS if each["kind"] == "PodDisruptionBudget"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == WORKLOADS["broker"]["spec"]["selector"]


def test_what_subscribers_talk_to_has_neither_password_nor_operators_token() -> None:
    making, broker, drain = (_named("broker", name) for name in ("tokens", "broker", "drain"))
    file, operator = making["command"][1:]
    assert _environment(broker)["TOCSIN_CONFIG"] == file
    assert drain["command"][1] == operator
    assert "envFrom" not in broker
    assert "envFrom" not in drain
    assert not any(operator.startswith(mount["mountPath"]) for mount in broker["volumeMounts"])


def test_the_secret_has_the_database_for_both_and_the_images_this_version() -> None:
    settings: Settings = settings_from(SECRET["stringData"])
    assert settings.coordinator.store == settings.data.state != ""
    assert all(__version__.startswith(each["newTag"]) for each in KUSTOMIZATION["images"])
    assert {each["name"] for each in KUSTOMIZATION["images"]} == {
        container["image"] for workload in WORKLOADS for container in _containers(workload)
    }


def test_kustomize_builds_it() -> None:
    pods = [each["spec"]["template"]["spec"] for each in kustomized(FOLDER) if "template" in each.get("spec", {})]
    images = [each["image"] for pod in pods for each in (*pod.get("initContainers", []), *pod["containers"])]
    assert [image.startswith("registry.example.org/tocsin-") for image in images] == [True] * len(ALL)


NODES = DEPLOY / "kubernetes-nodes"
[OVERLAY] = documents(NODES / "kustomization.yaml")
[WORKER, _, SCALER] = documents(NODES / "workers.yaml")
PATCH: list[dict[str, Any]] = documents(NODES / "data.patch.yaml")[0]  # type: ignore[assignment]


def _patched(thing: dict[str, Any]) -> dict[str, Any]:
    """With the overlay's patch, as RFC 6902 says."""
    made = copy.deepcopy(thing)
    for step in PATCH:
        *way, last = step["path"].strip("/").split("/")
        there: Any = made
        for name in way:
            there = there[int(name)] if isinstance(there, list) else there[name]
        if step["op"] == "remove":
            del there[last]
        elif last == "-":
            there.append(step["value"])
        else:
            assert step["op"] == "add" or last in there
            there[last] = step["value"]
    return made


def test_every_file_of_the_overlay_is_used() -> None:
    patches = {patch["path"] for patch in OVERLAY["patches"]}
    assert {path.name for path in NODES.iterdir()} == {*OVERLAY["resources"], *patches, "kustomization.yaml"} - {
        "../kubernetes"
    }


def test_a_worker_runs_what_its_image_has_without_the_databases_password() -> None:
    pod = WORKER["spec"]["template"]["spec"]
    [making], [worker] = pod["initContainers"], pod["containers"]
    for container in (making, worker):
        check_command(container["command"])
        assert container["image"] == "tocsin-data"
        assert container["securityContext"] == _named("data", "data")["securityContext"]
    settings = settings_from(_environment(worker)).worker
    assert (settings.head, settings.host, settings.name) == ("http://data:8800", "0.0.0.0", POD)
    assert [port["containerPort"] for port in worker["ports"]] == [settings.port]
    assert making["command"] == ["node-token", _environment(worker)["TOCSIN_CONFIG"]]
    assert "envFrom" not in worker
    assert pod["enableServiceLinks"] is False


def test_workers_and_data_clusters_see_one_directory_and_workers_have_time_to_leave() -> None:
    [volume] = documents(NODES / "volume.yaml")
    assert volume["spec"]["accessModes"] == ["ReadWriteMany"]
    data, pod = _patched(WORKLOADS["data"])["spec"], WORKER["spec"]["template"]["spec"]
    for each in (data["template"]["spec"], pod):
        claims = {
            one["name"]: one["persistentVolumeClaim"]["claimName"]
            for one in each["volumes"]
            if "persistentVolumeClaim" in one
        }
        assert claims == {"data": volume["metadata"]["name"]}
        assert {"name": "data", "mountPath": "/var/lib/tocsin"} in each["containers"][0]["volumeMounts"]
    assert pod["terminationGracePeriodSeconds"] >= 60


def test_of_two_data_clusters_only_the_active_one_is_ready_and_none_is_killed_for_standing_by() -> None:
    data = _patched(WORKLOADS["data"])["spec"]
    [container] = data["template"]["spec"]["containers"]
    check_command(container["command"])
    assert (data["replicas"], container["command"]) == (2, ["tocsin", "data", "--standby"])
    assert "volumeClaimTemplates" not in data
    assert settings_from(_environment(container)).nodes.share is True
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
    assert all("httpGet" not in container[probe] for probe in ("startupProbe", "livenessProbe"))
    assert (data["podManagementPolicy"], data["updateStrategy"]) == ("Parallel", {"type": "OnDelete"})


def test_workers_are_scaled_by_kubernetes_one_leaving_at_a_time() -> None:
    spec = SCALER["spec"]
    assert spec["scaleTargetRef"]["name"] == WORKER["metadata"]["name"]
    assert spec["minReplicas"] == WORKER["spec"]["replicas"]
    [policy] = spec["behavior"]["scaleDown"]["policies"]
    assert (policy["type"], policy["value"]) == ("Pods", 1)
    assert policy["periodSeconds"] >= WORKER["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]


def test_kustomize_builds_the_overlay_as_the_tests_see_it() -> None:
    made = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(NODES)}
    data, expected = made["StatefulSet", "data"]["spec"], _patched(WORKLOADS["data"])["spec"]
    data["template"]["spec"]["containers"][0]["image"] = "tocsin-data"
    assert data == expected
    assert made["StatefulSet", "worker"]["spec"]["replicas"] == WORKER["spec"]["replicas"]
