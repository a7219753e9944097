"""A Kafka server of the tests' own, on free ports of this machine: one node, from jars that a script has fetched."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_START_SECONDS: Final = 120.0
_JAVA: Final = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
JARS: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin" / "kafka"


class KafkaServer:
    """Starts and stops as a test wants; what it keeps stays. Made by :func:`kafka_server`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = _free_ports()
        self.servers = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": directory / "data",
            "offsets.topic.replication.factor": 1,
            "default.replication.factor": 1,
            "auto.create.topics.enable": "false",
            "log.cleaner.enable": "false",
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        (directory / "server.properties").write_text("\n".join(lines), encoding="utf-8")

    def create(self) -> None:
        """Makes its files."""
        name = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self._run("kafka.tools.StorageTool", "format", "-t", name, "-c").wait(_START_SECONDS)

    def start(self) -> None:
        """Starts, and waits until it answers."""
        self._process = self._run("kafka.Kafka")
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(admin):
            assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, self._log.read_text(encoding="utf-8")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, in order or at once."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)
            self._process = None

    def create_topic(self, topic: str, partitions: int) -> None:
        """Makes a topic, if there is none."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        if topic not in admin.list_topics().topics:
            admin.create_topics([NewTopic(topic, partitions)])[topic].result()

    def prefix(self) -> str:
        """A name for the topics of one test."""
        return f"test-{uuid4().hex}"

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert (JARS / "server").is_dir(), "Kafka is not there; scripts/ensure-kafka fetches it"
        classes = ["-cp", f"{JARS / 'server'}/*", program]
        command = ["java", *_JAVA, *classes, *arguments, str(self._directory / "server.properties")]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._directory)


@contextmanager
def kafka_server() -> Iterator[KafkaServer]:
    """A running server, which is gone in the end with all it kept."""
    with tempfile.TemporaryDirectory(prefix="tocsin-kafka-") as place:
        made = KafkaServer(Path(place))
        made.create()
        made.start()
        try:
            yield made
        finally:
            made.stop(signal.SIGKILL)


def connector_jars() -> str:
    """What Spark needs to read from Kafka, as its setting ``spark.jars`` wants it."""
    return ",".join(str(jar) for jar in sorted((JARS / "connector").glob("*.jar")))


def _answers(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
