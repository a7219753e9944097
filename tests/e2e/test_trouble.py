"""What can go wrong with a running data cluster, and that each costs a clear sentence and nothing that was accepted."""

from __future__ import annotations

import json
import re
import shutil
import signal
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, write_deltalake

from tests.e2e.conftest import Cluster
from tests.e2e.process import STOP_SECONDS, DataProcess
from tests.kafka import KafkaServer, connector_jars
from tests.mounting import own_file_system
from tests.postgresql import PostgresqlServer

pytestmark = pytest.mark.process

REPORTS: Final = """
CREATE DATASET Reports (id STRING, message STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO 2 SLICES;
"""
EVERY: Final = (
    "CREATE CONTINUOUS CHANNEL Every(least STRING) AS SELECT r.id FROM Reports r WHERE r.id >= least AND is_new(r);"
)


def report(number: int, size: int = 300) -> dict[str, str]:
    return {"id": f"report-{number:05d}", "message": f"{number} ".ljust(size, "x")}


def send(server: DataProcess, record: dict[str, Any], feed: str = "reports") -> int:
    return server.publish(feed, json.dumps(record).encode()).status_code


def stored(directory: Path) -> list[str]:
    """The ids in a table, read as any tool of a lakehouse would."""
    return sorted(DeltaTable(str(directory)).to_pyarrow_table(columns=["id"])["id"].to_pylist())


def ids(numbers: Iterable[int]) -> list[str]:
    return [report(number)["id"] for number in numbers]


def found(server: DataProcess, channel: str) -> list[str]:
    return sorted(row["id"] for result in server.results(channel) for row in result["payload"])


def problems(server: DataProcess) -> str:
    return "; ".join(server.health()["problems"])


def fill(ballast: Path) -> None:
    """Leaves no room."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_full_disk_is_told_to_publishers_and_room_is_used_at_once(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    server = cluster(own_file_system(tmp_path / "data", "64m"))
    server.start()
    server.wait_ready()
    server.apply(REPORTS + EVERY)
    server.subscribe("Every", [{"least": ""}])
    assert send(server, report(0)) == 200
    server.wait_drained()
    ballast = server.seen(server.directory / "ballast")
    fill(ballast)
    accepted, refused = 1, None
    while refused is None:
        answer = server.publish("reports", json.dumps(report(accepted)).encode())
        if answer.status_code == 200:
            accepted += 1
            continue
        assert answer.status_code == 507, answer.text
        refused = answer.json()["error"]
    assert refused["code"] == "storage"
    assert "the disk is full: nothing was accepted; free space at" in refused["message"]
    server.until(lambda: "the disk is full" in problems(server), "word of the full disk in its health")
    ballast.unlink()
    server.until(lambda: send(server, report(accepted)) == 200, "room")
    server.wait_drained()
    server.until(lambda: len(found(server, "Every")) > accepted, "results")
    server.until(lambda: server.health()["status"] == "ok", "health")
    copy = shutil.copytree(server.seen(server.directory / "datasets" / "Reports"), tmp_path / "copy")
    assert stored(copy) == found(server, "Every") == ids(range(accepted + 1))


def test_while_its_database_is_away_records_are_taken_and_found_and_all_is_there_after_a_kill(
    cluster: Cluster, postgresql: PostgresqlServer
) -> None:
    server = cluster(data__state=postgresql.database())
    server.start()
    server.wait_ready()
    server.apply(REPORTS + EVERY)
    (first,) = server.subscribe("Every", [{"least": ""}])
    postgresql.stop()
    try:
        assert send(server, report(0)) == 200
        server.until(lambda: found(server, "Every") == ids(range(1)), "results")
        refused = server.client.post(
            "/subscriptions", json={"broker": "tester", "channel": "Every", "parameters": [{"least": "z"}]}
        )
        assert refused.status_code == 507
        assert "see to the database" in refused.json()["error"]["message"]
    finally:
        postgresql.start()
    server.until(lambda: server.subscribe("Every", [{"least": ""}]) == [first], "the database")
    server.kill()
    server.wait_alone()
    server.start()
    server.wait_ready()
    assert send(server, report(1)) == 200
    server.until(lambda: found(server, "Every") == ids(range(2)), "results of who subscribed before")
    assert not (server.directory / "state.sqlite").exists()


def test_with_its_log_in_kafka_everything_accepted_is_found_once_whatever_dies(
    cluster: Cluster, kafka: KafkaServer
) -> None:
    server = cluster(**kafka_settings(kafka))
    server.start()
    server.wait_ready()
    server.apply(REPORTS + EVERY)
    server.subscribe("Every", [{"least": ""}])
    assert [send(server, report(number)) for number in range(5)] == [200] * 5
    server.until(lambda: found(server, "Every") == ids(range(5)), "results")
    assert [send(server, report(number)) for number in range(5, 8)] == [200] * 3
    server.kill()
    server.wait_alone()
    kafka.stop(signal.SIGKILL)
    kafka.start()
    server.start()
    server.wait_ready()
    server.until(lambda: found(server, "Every") == ids(range(8)), "results of what was accepted before")
    kafka.stop(signal.SIGKILL)
    assert send(server, report(8)) == 503
    kafka.start()
    # It may have been taken in spite of the answer, and is sent again: its id is known then.
    server.until(lambda: send(server, report(8)) == 200, "Kafka")
    server.until(lambda: found(server, "Every") == ids(range(9)), "results")
    assert stored(server.directory / "datasets" / "Reports") == ids(range(9))
    assert not (server.directory / "feeds" / "reports").exists()


def test_a_topic_that_others_fill_is_read_from_its_beginning_and_what_does_not_fit_is_kept_apart(
    cluster: Cluster, kafka: KafkaServer
) -> None:
    topic, server = kafka.prefix(), cluster(**kafka_settings(kafka))
    produce(kafka, topic, [json.dumps(report(number)).encode() for number in range(3)])
    produce(kafka, topic, [b"no record", b'{"message": "without an id"}', b"\xff\xfe", None])
    server.start()
    server.wait_ready()
    server.apply(REPORTS.replace("INTO 2 SLICES", f"INTO 1 SLICES FROM KAFKA '{topic}'") + EVERY)
    server.subscribe("Every", [{"least": ""}])
    server.until(lambda: found(server, "Every") == ids(range(3)), "what the topic had")
    refused = server.publish("reports", json.dumps(report(7)).encode())
    assert refused.status_code == 409
    assert "publish there" in refused.json()["error"]["message"]
    server.kill()
    server.wait_alone()
    produce(kafka, topic, [json.dumps(report(number)).encode() for number in (2, 3)])
    server.start()
    server.wait_ready()
    server.until(lambda: found(server, "Every") == ids(range(4)), "what came meanwhile, and nothing again")
    letters = DeltaTable(str(server.directory / "dead-letters" / "reports")).to_pyarrow_table().to_pylist()
    assert sorted(letter["line"] or "" for letter in letters) == ["", "", "no record", '{"message": "without an id"}']
    assert {letter["reason"] for letter in letters} >= {"is not UTF-8 text", "has no value"}


def produce(kafka: KafkaServer, topic: str, values: Sequence[bytes | None]) -> None:
    """As somebody who knows nothing of us."""
    producer = Producer({"bootstrap.servers": kafka.servers, "log_level": 0})
    kafka.create_topic(topic, 1)
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def kafka_settings(kafka: KafkaServer) -> dict[str, Any]:
    log = f"kafka://{kafka.servers}/{kafka.prefix()}"
    return {"feeds__log": log, "spark__extra": f'{{ "spark.jars" = "{connector_jars()}" }}'}


def damage(segment: Path) -> str:
    """Spoils a record in the middle of a segment; the id that it had."""
    content = segment.read_bytes()
    match = re.compile(rb'"(report-\d+)"').search(content, len(content) // 2)
    assert match is not None
    segment.write_bytes(content[: match.start()] + b"\x00\x00" + content[match.start() + 2 :])
    return match[1].decode()


def test_a_damaged_part_of_the_log_is_kept_aside_and_told_and_all_else_is_stored(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.apply(REPORTS)
    assert {send(server, report(number)) for number in range(80)} == {200}
    server.kill()
    assert stored(server.directory / "datasets" / "Reports") == [], "Spark was there before it was expected"
    segment = sorted((server.directory / "feeds" / "reports" / "slice-0000").glob("*.log"))[0]
    lost = damage(segment)
    spoiled = segment.read_bytes()
    server.start()
    server.wait_ready()
    server.wait_drained()
    assert stored(server.directory / "datasets" / "Reports") == [i for i in ids(range(80)) if i != lost]
    [kept] = (server.directory / "feeds" / "reports" / "quarantine").iterdir()
    assert kept.read_bytes() == spoiled
    server.until(lambda: str(kept.parent) in problems(server), "word of the damage in its health")
    assert server.health()["status"] == "degraded"
    assert send(server, report(int(lost.removeprefix("report-")))) == 200
    server.wait_drained()
    assert stored(server.directory / "datasets" / "Reports") == ids(range(80))
    server.kill()
    server.start()
    assert str(kept.parent) in problems(server)


READINGS: Final = """
CREATE DATASET Readings (id STRING, amount STRING) PRIMARY KEY id;
CREATE KEYED DATASET Scales (name STRING, divisor INT) PRIMARY KEY name;
CREATE FEED readings INTO Readings INTO 2 SLICES;
CREATE FEED scales INTO Scales INTO 2 SLICES;
CREATE CONTINUOUS CHANNEL Every(least STRING) AS SELECT r.id FROM Readings r WHERE r.id >= least AND is_new(r);
CREATE CONTINUOUS CHANNEL Large(least INT) AS
  SELECT r.id, CAST(r.amount AS INT) AS amount FROM Readings r WHERE CAST(r.amount AS INT) >= least AND is_new(r);
CREATE REPETITIVE CHANNEL Scaled(scale STRING) PERIOD 500 MILLISECONDS AS
  SELECT r.id, length(r.amount) / s.divisor AS share FROM Readings r JOIN Scales s ON true
  WHERE s.name = scale AND is_new(r);
"""


def test_a_channel_that_fails_says_so_and_is_healed_by_better_data_or_another_query(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.wait_ready()
    server.apply(READINGS)
    assert send(server, {"name": "grams", "divisor": 2}, "scales") == 200
    server.wait_drained()
    server.subscribe("Every", [{"least": ""}])
    server.subscribe("Large", [{"least": 5}])
    server.subscribe("Scaled", [{"scale": "grams"}])
    assert send(server, {"id": "1", "amount": "7"}, "readings") == 200
    for channel in ("Every", "Large", "Scaled"):
        server.until(lambda name=channel: found(server, name) == ["1"], f"first results of {channel}")  # type: ignore[misc]

    assert send(server, {"name": "grams", "divisor": 0}, "scales") == 200
    server.wait_drained()
    assert send(server, {"id": "2", "amount": "many"}, "readings") == 200
    server.until(lambda: server.channels()["Large"]["error"], "error of Large")
    server.until(lambda: server.channels()["Scaled"]["error"], "error of Scaled")
    [shown] = server.apply("SHOW CHANNELS")
    errors = {row["name"]: (row["state"] == "waiting", row["error"]) for row in shown["rows"]}
    assert errors["Every"] == (True, "")
    assert "CAST_INVALID_INPUT" in errors["Large"][1]
    assert "DIVIDE_BY_ZERO" in errors["Scaled"][1]
    assert "channel Large: " in problems(server)
    server.until(lambda: found(server, "Every") == ["1", "2"], "results of the channel that works")

    assert send(server, {"name": "grams", "divisor": 4}, "scales") == 200
    server.until(lambda: found(server, "Scaled") == ["1", "2"], "results of the healed channel")
    server.until(lambda: server.channels()["Scaled"]["error"] == "", "end of its error")
    assert send(server, {"id": "3", "amount": "9"}, "readings") == 200
    server.until(lambda: found(server, "Every") == ["1", "2", "3"], "results of the channel that works")
    assert found(server, "Large") == ["1"]
    server.apply(
        "CREATE OR REPLACE CONTINUOUS CHANNEL Large(least INT) AS SELECT r.id, try_cast(r.amount AS INT) AS amount "
        "FROM Readings r WHERE try_cast(r.amount AS INT) >= least AND is_new(r)"
    )
    server.until(lambda: found(server, "Large") == ["1", "3"], "results of the replaced channel")
    server.until(lambda: server.health()["status"] == "ok", "health")


def test_a_record_that_does_not_fit_is_refused_with_the_reason(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.apply("CREATE DATASET Sizes (id STRING, size INT) PRIMARY KEY id; CREATE FEED sizes INTO Sizes;")
    mixed = server.publish("sizes", b'{"id": "1", "size": 1}\n{"id": "2", "size": "tall"}\n{"id": "3", "size": 3}')
    assert mixed.status_code == 200
    assert mixed.json()["accepted"] == 2
    [refusal] = mixed.json()["refused"]
    assert refusal["index"] == 1
    assert "size" in refusal["reason"]
    none = server.publish("sizes", b'{"id": "4", "weight": 1}')
    assert none.status_code == 400
    assert "weight" in none.json()["error"]["message"]


def test_a_table_that_is_not_as_defined_stops_the_start_with_one_sentence(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.apply(REPORTS)
    server.kill()
    table = server.directory / "datasets" / "Reports"
    shutil.rmtree(table)
    write_deltalake(str(table), pa.table({"id": ["1"], "length": [1.5]}))
    server.log.write_bytes(b"")
    server.spawn()
    assert server.process.wait(STOP_SECONDS) == 1
    assert "Traceback" not in server.tail()
    # Spark, which starts meanwhile, may have a line of its own to say after it.
    [sentence] = [line for line in server.tail().splitlines() if line.startswith("error: ")]
    assert str(table) in sentence
    assert "length" in sentence
    assert "message" in sentence


def test_the_process_ends_with_one_sentence_when_spark_does_and_the_next_one_goes_on(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.apply(REPORTS)
    server.wait_ready()
    [java] = [process for process in server.relatives() if process.name() == "java"]
    assert [send(server, report(number)) for number in range(3)] == [200] * 3
    java.kill()
    assert server.process.wait(STOP_SECONDS) == 1
    assert "Spark's process has ended" in server.tail()
    assert "start the data cluster again" in server.tail()
    server.start()
    server.wait_ready()
    server.wait_drained()
    assert stored(server.directory / "datasets" / "Reports") == ids(range(3))


def test_publishers_are_asked_to_wait_when_too_much_waits_and_nothing_accepted_is_lost(cluster: Cluster) -> None:
    server = cluster(feeds__max_backlog_bytes=2048, data__max_request_bytes=2048)
    server.start()
    server.apply(REPORTS)
    accepted = 0
    while (answer := server.publish("reports", json.dumps(report(accepted)).encode())).status_code == 200:
        accepted += 1
    assert not server.health()["spark"], "Spark was there before it was expected"
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1
    assert "over its bound of 2,048" in answer.json()["error"]["message"]
    for number in range(accepted, accepted + 30):
        server.until(lambda n=number: send(server, report(n)) == 200, "room for more")  # type: ignore[misc]
    server.wait_drained()
    assert stored(server.directory / "datasets" / "Reports") == ids(range(accepted + 30))


def test_a_second_process_on_a_data_directory_stops_with_one_sentence_and_harms_nothing(cluster: Cluster) -> None:
    first, second = cluster(), cluster()
    first.start()
    first.apply(REPORTS)
    second.spawn()
    assert second.process.wait(STOP_SECONDS) == 1
    sentence = f"is being written by process {first.process.pid}: stop that process first, or choose another directory"
    [line] = second.tail().splitlines()
    assert line == f"error: the data directory at {first.directory} {sentence}"
    first.wait_ready()
    assert send(first, report(1)) == 200
    first.wait_drained()
    assert stored(first.directory / "datasets" / "Reports") == ids([1])


def test_a_process_asked_to_stop_while_it_is_busy_ends_well_and_keeps_what_it_accepted(cluster: Cluster) -> None:
    server = cluster()
    server.start()
    server.wait_ready()
    server.apply(REPORTS + EVERY)
    server.subscribe("Every", [{"least": ""}])
    accepted: list[int] = []

    def publish() -> None:
        try:
            while send(server, report(len(accepted))) == 200:
                accepted.append(len(accepted))
        except httpx.TransportError:
            return

    publisher = threading.Thread(target=publish)
    publisher.start()
    server.until(lambda: server.channels()["Every"]["execution"] > 1, "executions")
    before = server.log.stat().st_size
    assert server.terminate() == 0
    publisher.join()
    assert b"Traceback" not in server.log.read_bytes()[before:]
    server.wait_alone()
    server.start()
    server.wait_ready()
    server.wait_drained()
    # The record that was on its way when the process ended may have been accepted without the publisher's knowing.
    assert stored(server.directory / "datasets" / "Reports")[: len(accepted)] == ids(accepted)
    server.until(lambda: found(server, "Every")[: len(accepted)] == ids(accepted), "results")
    assert found(server, "Every") == stored(server.directory / "datasets" / "Reports")
