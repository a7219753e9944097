"""The manifests and the compose file are what Kubernetes and the compose specification define, to the last field.

Their schemas come with two packages of Python: nothing is asked of a cluster, or of anybody else.
"""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.files import DEPLOY, documents, kustomized

# The oldest that docs/scaling.md names, and the newest that is known here.
VERSIONS = ("1.30", kubernetes_validate.latest_version())
FOLDERS = (DEPLOY / "kubernetes", DEPLOY / "kubernetes-nodes")
COMPOSE = DEPLOY / "compose.yaml"


def validate(thing: dict[str, Any]) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(thing, version, strict=True)


def as_written() -> list[dict[str, Any]]:
    """The objects of the manifests, without what is for kustomize alone."""
    found = [each for folder in FOLDERS for path in sorted(folder.glob("*.yaml")) for each in documents(path)]
    # A patch is a list.
    return [each for each in found if "kind" in each and each["kind"] != "Kustomization"]


@pytest.mark.parametrize("thing", as_written(), ids=lambda thing: f"{thing['kind']}-{thing['metadata']['name']}")
def test_a_manifest_is_what_the_api_takes(thing: dict[str, Any]) -> None:
    validate(thing)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_applied_is_what_the_api_takes(folder: Path) -> None:
    made = kustomized(folder)
    assert {"StatefulSet", "Deployment", "Service", "Ingress", "ConfigMap"} <= {each["kind"] for each in made}
    for each in made:
        validate(each)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), "three"),
        (("spec", "replica"), 3),
        (("spec", "template", "spec", "containers", 0, "readinessProbe", "httpGet", "prot"), 80),
        (("spec", "template", "spec", "containers", 0, "name"), None),
    ],
)
def test_a_wrong_field_is_noticed(path: tuple[Any, ...], value: object) -> None:
    wrong = copy.deepcopy(next(each for each in as_written() if each["kind"] == "StatefulSet"))
    *way, last = path
    there: Any = wrong
    for name in way:
        there = there[name]
    there[last] = value
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(wrong)


def check_compose(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_compose_file_is_what_the_specification_defines() -> None:
    done = check_compose(COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_field_of_a_service_is_noticed(tmp_path: Path) -> None:
    [wrong] = documents(COMPOSE)
    wrong["services"]["data"]["depend_on"] = ["postgresql"]
    (tmp_path / "compose.yaml").write_text(yaml.safe_dump(wrong), encoding="utf-8")
    done = check_compose(tmp_path / "compose.yaml")
    assert (done.returncode, "depend_on" in done.stdout + done.stderr) == (1, True)
