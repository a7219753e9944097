from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tocsin.data.server.app import create_app
from tocsin.data.server.call import Operation
from tocsin.data.server.openapi import document
from tocsin.data.server.operations import OPERATIONS
from tocsin.settings import Settings

DOCUMENT = document(OPERATIONS)


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in the document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def resolved(reference: str) -> Any:
    found: Any = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def test_every_reference_leads_somewhere() -> None:
    references = {found["$ref"] for found in walk(DOCUMENT) if isinstance(found.get("$ref"), str)}
    mappings = {
        to for found in walk(DOCUMENT) if "discriminator" in found for to in found["discriminator"]["mapping"].values()
    }
    assert len(references) > 10
    assert all(resolved(reference)["type"] in ("object", "array") for reference in references | mappings)


def test_every_route_of_the_application_is_described(cluster: MemoryCluster, settings: Settings) -> None:
    app = create_app(cluster, MemoryTokens(), settings)
    routes = {
        (route.path, method.lower())  # type: ignore[attr-defined]
        for route in app.routes
        for method in (getattr(route, "methods", None) or set()) - {"HEAD"}
    }
    described = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert routes == described


def test_operations_have_names_of_their_own_and_all_that_a_document_must_have() -> None:
    described = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in described}) == len(described)
    for operation in described:
        assert operation["responses"]
        assert all(answer["description"] for answer in operation["responses"].values())
        assert operation["summary"]
        assert operation["tags"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_names_in_a_path_are_described_as_parameters(operation: Operation) -> None:
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]["parameters"]
    in_path = {parameter["name"] for parameter in described if parameter["in"] == "path"}
    assert in_path == set(re.findall(r"\{(\w+)\}", operation.path))


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.body], ids=lambda operation: operation.name)
def test_an_example_is_what_its_call_takes(operation: Operation) -> None:
    assert operation.body is not None
    struct = next(iter(operation.body.media.values()))
    if not isinstance(struct, str):
        msgspec.json.decode(operation.body.example, type=struct)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_what_a_call_answers_is_among_the_answers_described(
    client: httpx.AsyncClient, operation: Operation
) -> None:
    answer = await client.request(
        operation.method,
        operation.path.replace("{name}", "thing"),
        content=operation.body.example if operation.body else None,
        headers={"Content-Type": next(iter(operation.body.media))} if operation.body else {},
    )
    assert str(answer.status_code) in DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]


def test_the_operations_of_the_papers_are_all_there() -> None:
    papers = {operation.paper for operation in OPERATIONS if operation.paper}
    assert papers >= {
        "createdataset",
        "createfeed",
        "createchannel",
        "createbroker",
        "subscribe",
        "unsubscribe",
        "publish",
        "results",
        "health",
    }


async def test_the_document_is_served(client: httpx.AsyncClient) -> None:
    assert (await client.get("/openapi.json")).json() == DOCUMENT


async def test_the_page_needs_nothing_from_elsewhere(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.headers["Content-Type"].startswith("text/html")
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page.text)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert (await client.get("/")).headers["Location"] == "/docs"


def test_the_page_uses_only_ids_it_has() -> None:
    page = files("tocsin.data.server").joinpath("page.html").read_text(encoding="utf-8")
    wanted = set(re.findall(r'getElementById\("(\w+)"\)', page))
    assert wanted == {"version", "about", "main", "token"}
    assert all(f'id="{name}"' in page for name in wanted)


DOCS = Path(__file__).parents[3] / "docs" / "rest.md"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_written_documentation_has_the_call_with_its_role(operation: Operation) -> None:
    headings = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]
    [heading] = [line for line in headings if f"`{operation.method} {operation.path}`" in line]
    assert heading.endswith(f"({operation.access})")


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.paper], ids=lambda each: each.paper)
def test_the_written_documentation_maps_the_name_of_the_papers(operation: Operation) -> None:
    rows = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    [row] = [row for row in rows if operation.paper in re.split(r"[ ,|]+", row.split("|")[1])]
    assert operation.path in row
    assert row.rstrip().endswith(f"| {operation.access} |")
