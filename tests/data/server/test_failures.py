from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.examples import examples
from tocsin import errors
from tocsin.data.server.app import create_app
from tocsin.data.server.call import Operation
from tocsin.data.server.operations import OPERATIONS
from tocsin.log import JsonFormatter
from tocsin.settings import DataSettings, Settings

SECRET = "secret of the server"
WITH_BODY = [operation for operation in OPERATIONS if operation.body]


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged, one JSON object per line."""
    root, lines = logging.getLogger(), io.StringIO()
    handlers, level = list(root.handlers), root.level
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonFormatter())
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    yield lines
    root.handlers = handlers
    root.setLevel(level)


def asking_the_cluster(operation: Operation) -> bool:
    return operation.path not in ("/openapi.json", "/docs", "/")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.InvalidError("x"), 400, "invalid"),
        (errors.NotFoundError("x"), 404, "not-found"),
        (errors.ConflictError("x"), 409, "conflict"),
        (errors.StorageError("x"), 507, "storage"),
        (errors.UnavailableError("x"), 503, "unavailable"),
    ],
)
async def test_errors_of_the_cluster_keep_their_status_code_and_message(
    client: httpx.AsyncClient, cluster: MemoryCluster, error: Exception, status: int, code: str
) -> None:
    cluster.failing = error
    answer = await client.post("/feeds/reports", content=b"{}")
    assert (answer.status_code, answer.json()) == (status, {"error": {"code": code, "message": "x"}})


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (1.0, "1"), (1.5, "2")])
async def test_a_busy_feed_says_when_to_come_again(
    client: httpx.AsyncClient, cluster: MemoryCluster, seconds: float, header: str
) -> None:
    cluster.failing = errors.BusyError("the log is full", retry_after=seconds)
    answer = await client.post("/feeds/reports", content=b"{}")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, header)
    assert answer.json()["error"]["retry_after"] == seconds


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if asking_the_cluster(each)], ids=lambda operation: operation.name
)
async def test_a_fault_reaches_the_log_and_the_client_gets_its_reference(
    client: httpx.AsyncClient, cluster: MemoryCluster, operation: Operation, written: io.StringIO
) -> None:
    cluster.failing = ZeroDivisionError(SECRET)
    media = next(iter(operation.body.media)) if operation.body else ""
    answer = await client.request(
        operation.method,
        operation.path.replace("{name}", "thing"),
        content=operation.body.example if operation.body else None,
        headers={"Content-Type": media},
    )
    assert answer.status_code == 500
    error = answer.json()["error"]
    assert error["code"] == "internal"
    assert error["reference"] in error["message"]
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text
    [line] = [line for line in map(json.loads, written.getvalue().splitlines()) if "exception" in line]
    assert line["reference"] == error["reference"]
    assert SECRET in line["exception"]


async def test_a_call_that_does_not_exist_is_answered_in_the_same_shape(client: httpx.AsyncClient) -> None:
    for path in ("/nothing", "/datasets/", "/feeds/a/b"):
        missing = await client.get(path)
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not-found")


async def test_a_wrong_method_is_told_all_that_are_allowed(client: httpx.AsyncClient) -> None:
    wrong = await client.put("/feeds/reports")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method-not-allowed")
    assert set(wrong.headers["Allow"].split(", ")) == {"POST", "DELETE"}


async def test_every_answer_has_the_careful_headers(client: httpx.AsyncClient) -> None:
    for path in ("/health", "/nothing", "/docs"):
        answer = await client.get(path)
        assert (answer.headers["X-Content-Type-Options"], answer.headers["Cache-Control"]) == ("nosniff", "no-store")


@pytest.fixture
async def small(cluster: MemoryCluster, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A server that takes bodies of up to 1024 bytes."""
    data = DataSettings(directory=settings.data.directory, max_request_bytes=1024)
    app = create_app(cluster, MemoryTokens(), Settings(data=data))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://tocsin", headers={"Authorization": "Bearer admin"}
    ) as client:
        yield client


BOUNDED = [operation for operation in WITH_BODY if not operation.path.endswith("/load")]


@pytest.mark.parametrize("operation", BOUNDED, ids=lambda operation: operation.name)
async def test_a_body_over_the_bound_is_refused_before_it_is_read(
    small: httpx.AsyncClient, operation: Operation
) -> None:
    path = operation.path.replace("{name}", "thing")
    answer = await small.request(operation.method, path, content=b" " * 1025)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too-large")
    assert (await small.request(operation.method, path, content=b" " * 1024)).status_code != 413


@pytest.mark.parametrize("operation", BOUNDED, ids=lambda operation: operation.name)
async def test_a_body_of_unknown_length_is_read_no_further_than_the_bound(
    small: httpx.AsyncClient, operation: Operation
) -> None:
    asked_for = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal asked_for
        while True:
            asked_for += 100
            yield b" " * 100

    answer = await small.request(operation.method, operation.path.replace("{name}", "thing"), content=endless())
    assert answer.status_code == 413
    assert asked_for <= 1200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
requests = st.sampled_from(["name", "url", "broker", "channel", "parameters", "ids", "first", "last", "statement"])
bodies = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(requests, json_values, max_size=5).map(lambda value: json.dumps(value).encode()),
    st.just(b"[" * 5_000),
    st.just(b'{"a":' * 5_000),
)
media_types = st.sampled_from(
    ["", "application/json", "application/x-ndjson", "text/csv", "text/sql", "application/vnd.apache.parquet"]
)


@given(operation=st.sampled_from(WITH_BODY), body=bodies, media=media_types)
@example_settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_body_whatever_is_a_fault(
    client: httpx.AsyncClient, operation: Operation, body: bytes, media: str
) -> None:
    await client.post("/apply", content="CREATE DATASET thing (id STRING) PRIMARY KEY id; CREATE FEED feed INTO thing")
    name = "feed" if operation.path == "/feeds/{name}" else "thing"
    path, headers = operation.path.replace("{name}", name), {"Content-Type": media} if media else {}
    answer = await client.request(operation.method, path, content=body, headers=headers)
    assert answer.status_code in (200, 201, 400, 404, 409, 413)
    if answer.status_code >= 400:
        msgspec.json.decode(answer.content, type=dict[str, dict[str, object]])["error"]["message"]


@given(path=st.text(max_size=30), query=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2))
@example_settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_address_whatever_is_a_fault(client: httpx.AsyncClient, path: str, query: dict[str, str]) -> None:
    for prefix in ("", "datasets/", "feeds/"):
        url = httpx.URL(f"http://tocsin/{prefix}{quote(path, safe='')}", params=query)
        answer = await client.delete(url)
        assert answer.status_code in (200, 400, 404, 405)
