"""A Kafka of one node on this machine, from the jars that ``scripts/ensure-kafka`` has fetched."""

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
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from uuid import uuid4

from tocsin.errors import UnavailableError

KAFKA_JARS: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin" / "kafka"
_START_SECONDS: Final = 120.0
_JAVA: Final = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def has_kafka() -> bool:
    """Whether Kafka, Spark's connector for it and what speaks to it are installed."""
    return all((KAFKA_JARS / name).is_dir() for name in ("server", "connector")) and bool(find_spec("confluent_kafka"))


def connector_jars() -> str:
    """What Spark needs to read from Kafka, as its setting ``spark.jars`` wants it."""
    return ",".join(str(jar) for jar in sorted((KAFKA_JARS / "connector").glob("*.jar")))


def new_cluster_id() -> str:
    """As Kafka wants it, to format its directory. It does not begin with "-", as an option does."""
    first, *others = uuid4().bytes
    return urlsafe_b64encode(bytes([first & 0x7F, *others])).decode().rstrip("=")


def properties(address: str, controller: str, directory: Path) -> str:
    """The settings of a single node, ``host:port`` for clients and for itself; what it keeps is in ``directory``."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{address}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": directory,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "default.replication.factor": 1,
        "auto.create.topics.enable": "false",
        "log.cleaner.enable": "false",
    }
    return "\n".join(f"{name}={value}" for name, value in settings.items())


class KafkaServer:
    """Starts and stops as often as one wants, on the same free port of 127.0.0.1; what it keeps stays.

    Raises UnavailableError if it does not start.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = _free_ports()
        self.servers = f"127.0.0.1:{port}"
        self._settings.write_text(
            properties(self.servers, f"127.0.0.1:{controller}", directory / "data"), encoding="utf-8"
        )

    def create(self) -> None:
        """Makes its files."""
        self._run("kafka.tools.StorageTool", "format", "-t", new_cluster_id(), "-c").wait(_START_SECONDS)

    def start(self) -> None:
        """Starts, and waits until it answers."""
        self._process = self._run("kafka.Kafka")
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(self.servers):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError(f"Kafka does not start: {self._log.read_text(encoding='utf-8')}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, in order or at once."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)
            self._process = None

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    @property
    def _settings(self) -> Path:
        return self._directory / "server.properties"

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        if not has_kafka():
            raise UnavailableError(
                "Kafka is not there: scripts/ensure-kafka fetches it, and tocsin[kafka] brings what speaks to it"
            )
        classes = ["-cp", f"{KAFKA_JARS / 'server'}/*", program]
        command = ["java", *_JAVA, *classes, *arguments, str(self._settings)]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._directory)


@contextmanager
def kafka_server(make: type[KafkaServer] = KafkaServer) -> Iterator[KafkaServer]:
    """A running server, which is gone in the end with all it kept."""
    with tempfile.TemporaryDirectory(prefix="tocsin-kafka-") as place:
        made = make(Path(place))
        made.create()
        try:
            made.start()
            yield made
        finally:
            made.stop(signal.SIGKILL)


def _answers(servers: str) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        return bool(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
