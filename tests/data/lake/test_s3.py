"""Tables in S3 when the server, the network or another writer is in the way: nothing lost, nothing twice."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from random import Random
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import GenericError

from tests.s3 import KEY, SECRET, S3Server, s3_server
from tests.waiting import until
from tocsin.data.lake import s3 as module
from tocsin.data.lake.bucket import Bucket, BucketAddress
from tocsin.data.lake.folder import OutcomeUnknownError
from tocsin.data.lake.s3 import S3Folder
from tocsin.data.lake.table import Table
from tocsin.data.removal import discard, set_aside
from tocsin.errors import StorageError, SupersededError
from tocsin.local.s3 import BUCKET
from tocsin.settings import LakeSettings

Rows = Callable[..., pa.Table]
Content = Callable[[Table], dict[str, int]]
SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])


@pytest.fixture
def folder(s3: S3Server) -> S3Folder:
    return s3.folder()


@pytest.fixture
def own_server() -> Iterator[S3Server]:
    """A server that the test may stop."""
    with s3_server() as running:
        yield running


@pytest.fixture
def lost_answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What becomes of the next conditional puts: "taken" or "lost" on their way, and no answer either way."""
    put = obstore.put
    fates: list[str] = []

    def losing(store: Any, path: str, content: bytes, **options: Any) -> Any:
        if not fates or options.get("mode") != "create":
            return put(store, path, content, **options)
        if fates.pop(0) == "taken":
            put(store, path, content, **options)
        raise GenericError("the connection was closed before an answer came")

    monkeypatch.setattr(obstore, "put", losing)
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.01)
    return fates


def test_of_two_writers_one_commits_and_the_other_is_told(folder: S3Folder, rows: Rows, content: Content) -> None:
    one, other = Table(folder, SCHEMA), Table(folder, SCHEMA)
    one.append(rows(a=1), {"slice-0": 1})
    for _ in range(2):
        with pytest.raises(SupersededError, match="has taken over the table"):
            other.append(rows(b=2), {"slice-0": 2})
    assert (other.version, other.marker("slice-0"), content(other)) == (0, 0, {})
    one.append(rows(c=3), {"slice-0": 3})
    again = Table(folder, SCHEMA)
    assert (again.version, again.marker("slice-0"), content(again)) == (2, 3, {"a": 1, "c": 3})
    assert {file.name for file in again.snapshot.files} == {name for name in folder.files() if name[0] != "_"}


def test_a_writer_that_was_away_for_so_long_that_its_next_number_is_free_again_commits_nothing(
    folder: S3Folder, rows: Rows, content: Content
) -> None:
    one, other = Table(folder, SCHEMA), Table(folder, SCHEMA)
    for number in range(1, 31):
        one.mark({"slice-0": number})
        one.checkpoint(10)
    log = folder.below("_delta_log")
    before = log.files()
    assert "00000000000000000001.json" not in before
    with pytest.raises(SupersededError, match="has taken over the table"):
        other.append(rows(b=2), {"slice-0": 100})
    assert log.files() == before
    assert (Table(folder, SCHEMA).marker("slice-0"), content(one)) == (30, {})


def test_of_many_writers_at_once_each_entry_is_of_one(folder: S3Folder, rows: Rows, content: Content) -> None:
    accepted: dict[str, int] = {}

    def write(writer: int) -> None:
        table = Table(folder, SCHEMA)
        for number in range(5):
            try:
                table.append(rows(**{f"{writer}-{number}": number}), {})
            except SupersededError:
                table = Table(folder, SCHEMA)
            else:
                accepted[f"{writer}-{number}"] = number

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert accepted
    assert content(Table(folder, SCHEMA)) == accepted


@pytest.mark.parametrize("fates", [["taken"], ["lost"], ["lost", "taken"], ["taken", "lost", "lost"]])
def test_a_commit_whose_answer_was_lost_is_there_once(
    folder: S3Folder, rows: Rows, content: Content, lost_answers: list[str], fates: list[str]
) -> None:
    table = Table(folder, SCHEMA)
    lost_answers.extend(fates)
    table.append(rows(a=1), {"slice-0": 1})
    table.append(rows(b=2), {"slice-0": 2})
    again = Table(folder, SCHEMA)
    for found in (table, again):
        assert (found.version, found.marker("slice-0"), content(found)) == (2, 2, {"a": 1, "b": 2})


def test_a_commit_that_is_there_counts_though_the_server_is_gone_right_after_it(
    folder: S3Folder, rows: Rows, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, head, refusals = Table(folder, SCHEMA), obstore.head, [1, 2, 3]

    def gone(store: Any, path: str) -> Any:
        if refusals:
            raise GenericError(f"no connection, attempt {refusals.pop(0)}\nHttpError {{\n kind: Connect,")
        return head(store, path)

    monkeypatch.setattr(obstore, "head", gone)
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.01)
    table.append(rows(a=1), {"slice-0": 1})
    assert (refusals, table.version) == ([], 1)
    assert content(Table(folder, SCHEMA)) == {"a": 1}


@pytest.mark.parametrize("fate", ["taken", "lost"])
def test_a_process_that_ends_before_an_answer_came_leaves_the_commit_there_or_not(
    folder: S3Folder, rows: Rows, content: Content, lost_answers: list[str], fate: str
) -> None:
    table = Table(folder, SCHEMA)
    lost_answers.append(fate)
    folder.close()
    with pytest.raises(StorageError, match="no answer came to the commit") as raised:
        table.append(rows(a=1), {"slice-0": 1})
    assert isinstance(raised.value.__cause__, OutcomeUnknownError)
    again = Table(folder, SCHEMA)
    there = fate == "taken"
    assert (again.marker("slice-0"), content(again)) == ((1, {"a": 1}) if there else (0, {}))


def test_a_server_that_is_not_there_costs_an_error_and_nothing_else(
    own_server: S3Server, rows: Rows, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.lake.bucket._RETRY", timedelta(seconds=0.1))
    folder = own_server.folder()
    table = Table(folder, SCHEMA)
    table.append(rows(a=1), {"slice-0": 1})
    own_server.stop(signal.SIGKILL)
    with pytest.raises(StorageError, match="cannot be written"):
        table.mark({"slice-0": 2})
    with pytest.raises(StorageError, match="cannot be written"):
        table.append(rows(b=2), {"slice-0": 2})
    with pytest.raises(StorageError, match="cannot be read"):
        table.read()
    assert (table.version, table.marker("slice-0")) == (1, 1)
    own_server.start()
    table.append(rows(b=2), {"slice-0": 2})
    assert content(Table(folder, SCHEMA)) == {"a": 1, "b": 2}


def test_a_server_that_dies_in_the_middle_of_a_commit_and_comes_back_has_it_once(
    own_server: S3Server, rows: Rows, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own_server.folder()
    table = Table(folder, SCHEMA)
    table.append(rows(a=1), {"slice-0": 1})
    asked_again, wait = threading.Event(), folder._bucket.ending.wait

    def waiting(seconds: float) -> bool:
        asked_again.set()
        return wait(seconds)

    monkeypatch.setattr(folder._bucket.ending, "wait", waiting)
    # It takes the connection and the request, and is killed before it has answered.
    own_server.pause()
    committing = threading.Thread(target=table.mark, args=({"slice-0": 2},))
    committing.start()
    until(own_server.has_request)
    own_server.stop(signal.SIGKILL)
    assert asked_again.wait(120)
    assert table.version == 1
    own_server.start()
    committing.join()
    assert (table.version, table.marker("slice-0")) == (2, 2)
    table.append(rows(c=3), {"slice-0": 3})
    again = Table(folder, SCHEMA)
    assert (again.version, again.marker("slice-0"), content(again)) == (3, 3, {"a": 1, "c": 3})


def test_wrong_credentials_are_refused_at_once(s3: S3Server, rows: Rows) -> None:
    folder = s3.folder("somebody")
    Table(folder, SCHEMA)
    stranger = S3Folder(Bucket(BucketAddress(BUCKET, s3.endpoint, "us-east-1", KEY, f"{SECRET}-not")), "somebody")
    with pytest.raises(StorageError, match="somebody"):
        Table(stranger, SCHEMA)
    with pytest.raises(OSError, match="403"):
        stranger.commit(1, b"")
    assert SECRET not in repr(stranger._bucket.address)


def test_a_table_of_hundreds_of_commits_is_opened_from_its_checkpoint(
    folder: S3Folder, rows: Rows, content: Content
) -> None:
    table = Table(folder, SCHEMA)
    table.append(rows(a=1), {})
    for number in range(1, 41):
        table.mark({"slice-0": number})
        table.checkpoint(10)
    names = folder.below("_delta_log").files()
    assert len([name for name in names if name.endswith(".json")]) < 25
    again = Table(folder, SCHEMA)
    assert (again.version, again.marker("slice-0"), content(again), again.damage) == (41, 40, {"a": 1}, "")


def test_a_commit_whose_file_somebody_has_deleted_is_set_aside(folder: S3Folder, rows: Rows, content: Content) -> None:
    table = Table(folder, SCHEMA)
    table.append(rows(a=1), {"slice-0": 1})
    table.append(rows(b=2), {"slice-0": 2})
    [file] = table.snapshot.after(1)
    folder.delete(file.name)
    again = Table(folder, SCHEMA)
    assert (again.version, again.marker("slice-0"), content(again)) == (1, 1, {"a": 1})
    assert folder.below("_quarantine").url in again.damage


def test_a_folder_is_removed_as_a_whole_whatever_becomes_of_the_process(
    folder: S3Folder, rows: Rows, content: Content
) -> None:
    dataset, other = folder.below("Reports"), folder.below("ReportsOfOthers")
    for each in (dataset, other):
        Table(each, SCHEMA).append(rows(a=1), {})
    with pytest.raises(ValueError, match="it was not stored"), set_aside(dataset):
        raise ValueError("it was not stored")
    assert (dataset.is_there(), content(Table(dataset, SCHEMA))) == (True, {"a": 1})
    assert dataset.take_away()
    assert not dataset.is_there()
    assert [left.url for left in folder.unfinished_removals()] == [dataset.url]
    dataset.finish_removal()
    assert (folder.unfinished_removals(), folder.folders()) == ([], ["ReportsOfOthers"])
    assert content(Table(dataset, SCHEMA)) == {}
    discard(dataset)
    discard(dataset)
    assert content(Table(other, SCHEMA)) == {"a": 1}


def test_a_file_too_large_for_one_put_is_whole(folder: S3Folder) -> None:
    chance = Random(7)
    large = pa.table({"key": [chance.randbytes(2000).hex() for _ in range(6000)], "value": range(6000)}, schema=SCHEMA)
    table = Table(folder, SCHEMA)
    table.append(large, {})
    [file] = table.snapshot.files
    assert file.size == folder.files()[file.name].size > 12_000_000
    assert Table(folder, SCHEMA).read(columns=["key", "value"]).equals(large)


def test_a_folder_reaches_other_processes_which_have_keys_of_their_own(
    folder: S3Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("name", b"content")
    sent = pickle.dumps(folder)
    assert not any(key.encode() in sent for key in (KEY, SECRET))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert pickle.loads(sent).read("name") == b"content"


def test_keys_are_not_for_spark_whose_command_line_everybody_can_read(folder: S3Folder) -> None:
    assert folder.spark["spark.hadoop.fs.s3a.endpoint"].startswith("http://127.0.0.1")
    assert not {KEY, SECRET} & set(folder.spark.values())


def test_the_address_is_that_of_the_settings_or_else_of_the_environment() -> None:
    variables = {"AWS_ENDPOINT_URL": "https://one", "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "key"}
    found = BucketAddress.read("b", LakeSettings(), variables)
    assert (found.endpoint, found.region, found.access_key) == ("https://one", "eu-west-1", "key")
    found = BucketAddress.read("b", LakeSettings(endpoint="http://other", region="us-west-2"), variables)
    assert (found.endpoint, found.region, found.plain) == ("http://other", "us-west-2", True)
    assert BucketAddress.read("b", LakeSettings(), {}).region == "us-east-1"
