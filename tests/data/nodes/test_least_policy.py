"""With the policy of docs/slices.md a worker does all its work in a bucket, and can do nothing else there."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.data.nodes.sharing import Sharing, on_spark
from tests.pages import ROOT, blocks
from tests.s3 import KEY, SECRET, S3Server, s3_server
from tocsin.data.lake.folder import Folder
from tocsin.data.nodes.results import ResultWriter
from tocsin.data.results import FOUND
from tocsin.local.s3 import BUCKET, S3_PROGRAM

pytestmark = [pytest.mark.spark, pytest.mark.s3]

WORKER: Final = {"AWS_ACCESS_KEY_ID": "worker", "AWS_SECRET_ACCESS_KEY": "not-the-data-clusters"}
PREFIX: Final = "tocsin"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that knows a second user, to whom the page's policy applies."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("VGW_IAM_DIR", str(tmp_path_factory.mktemp("users")))
        with s3_server() as server:
            add_user(server)
            put_policy(server, json.dumps(policy()).encode())
            yield server


@pytest.fixture
def sharing(store: S3Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sharing]:
    """The head has its own keys; whatever looks for keys from now on finds the worker's."""
    for name, value in {**store.variables, **WORKER}.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    sharing = Sharing(tmp_path, lake=store.folder(f"{PREFIX}/{tmp_path.name}"))
    yield sharing
    sharing.log.close()


@pytest.mark.parametrize("by_executors", [False, True], ids=["here", "executors"])
def test_a_worker_prepares_writes_and_drops_what_was_sent_twice(
    sharing: Sharing, spark: SparkSession, by_executors: bool
) -> None:
    one = on_spark(spark, sharing, "a", by_executors)
    one.prepare(range(4))
    sharing.publish(*({"id": f"r{number}", "value": number} for number in range(20)))
    sharing.publish_lines(("r5", b"no json"))
    first = one.process(sharing.starts())
    # That nobody takes; it stays there for the head to remove.
    one.discard(one.process(sharing.starts()).files)
    sharing.commit(first)
    sharing.publish(*({"id": f"r{number}", "value": -1} for number in range(15, 25)))
    other = on_spark(spark, sharing, "b", by_executors)
    other.prepare(range(4))
    sharing.commit(other.process(sharing.starts()))
    assert sharing.rows() == {f"r{number}": number if number < 20 else -1 for number in range(25)}
    assert sharing.letters.read(columns=["line"])["line"].to_pylist() == ["no json"]


def test_what_channels_find_is_written_where_results_are(sharing: Sharing) -> None:
    found = pa.Table.from_pylist([{"be": 1, "payload": "[{}]", "rows": 1, "bytes": 4}], schema=FOUND)
    folder = sharing.shared.folder.below("results/OfKind")
    [file] = ResultWriter(folder).write(found)
    assert folder.read(file.name)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda lake: lake.create("datasets/Reports/_delta_log/00000000000000000099.json", b"{}"),
        lambda lake: lake.write("datasets/Reports/_delta_log/00000000000000000000.json", b"{}"),
        lambda lake: lake.write("datasets/Reports/part-1.parquet", b""),
        lambda lake: lake.delete("datasets/Reports/_delta_log/00000000000000000000.json"),
        lambda lake: lake.write("_owner", b"me"),
        lambda lake: lake.write("told-nodes/node-1.parquet", b""),
    ],
    ids=["commit", "overwrite", "other name", "delete", "owner", "other folder"],
)
def test_a_worker_can_do_nothing_else(sharing: Sharing, attempt: Callable[[Folder], None]) -> None:
    with pytest.raises(OSError, match=r"privileges|Access ?Denied|403"):
        attempt(sharing.shared.folder)


def policy() -> dict[str, Any]:
    """The page's, of this bucket, and as the bucket's own: it says to whom it applies."""
    [text] = [block for block in blocks(ROOT / "docs" / "slices.md", "json") if "s3:PutObject" in block]
    text = text.replace("bucket/prefix/", f"{BUCKET}/{PREFIX}/*/").replace(":::bucket", f":::{BUCKET}")
    made: dict[str, Any] = json.loads(text)
    for statement in made["Statement"]:
        statement["Principal"] = {"AWS": [WORKER["AWS_ACCESS_KEY_ID"]]}
    return made


def add_user(server: S3Server) -> None:
    ours = ("--allow-insecure", "--access", KEY, "--secret", SECRET, "--endpoint-url", server.endpoint)
    theirs = ("--access", WORKER["AWS_ACCESS_KEY_ID"], "--secret", WORKER["AWS_SECRET_ACCESS_KEY"], "--role", "user")
    subprocess.run([S3_PROGRAM / "versitygw", "admin", *ours, "create-user", *theirs], check=True, capture_output=True)


def put_policy(server: S3Server, content: bytes) -> None:
    """A call that no client here knows, signed as AWS describes (version 4)."""
    host, moment = f"127.0.0.1:{server.port}", datetime.now(UTC)
    at, scope = f"{moment:%Y%m%dT%H%M%SZ}", (f"{moment:%Y%m%d}", "us-east-1", "s3", "aws4_request")
    headers = {"host": host, "x-amz-content-sha256": hashlib.sha256(content).hexdigest(), "x-amz-date": at}
    names = ";".join(headers)
    lines = [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join(["PUT", f"/{BUCKET}", "policy=", *lines, "", names, headers["x-amz-content-sha256"]])
    key = f"AWS4{SECRET}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    signed = "\n".join(["AWS4-HMAC-SHA256", at, "/".join(scope), hashlib.sha256(request.encode()).hexdigest()])
    signature = hmac.digest(key, signed.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={KEY}/{'/'.join(scope)}, SignedHeaders={names}, Signature={signature}"
    )
    with httpx.Client(trust_env=False) as client:
        client.put(f"{server.endpoint}/{BUCKET}?policy=", content=content, headers=headers).raise_for_status()
