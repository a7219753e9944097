"""A Kafka server of the tests' own, on free ports of this machine: one node, from jars that a script has fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.certificate import authority
from tests.ports import free_port
from tocsin.local import kafka
from tocsin.local.kafka import connector_jars

__all__ = ["PASSWORD", "USER", "KafkaServer", "SecuredKafka", "connector_jars", "kafka_server", "secured_kafka"]


class KafkaServer(kafka.KafkaServer):
    """Starts and stops as a test wants; what it keeps stays. Made by :func:`kafka_server`."""

    def create_topic(self, topic: str, partitions: int) -> None:
        """Makes a topic, if there is none."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        if topic not in admin.list_topics().topics:
            admin.create_topics([NewTopic(topic, partitions)])[topic].result()

    def prefix(self) -> str:
        """A name for the topics of one test."""
        return f"test-{uuid4().hex}"


USER: Final = "tocsin"
# With what has a meaning where passwords are quoted.
PASSWORD: Final = 'a "long" \\ secret;'


class SecuredKafka(KafkaServer):
    """One that also listens where only TLS is spoken, and only ``USER`` may come in."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.ca, files = authority(directory)
        both = [Path(files[name]).read_text(encoding="utf-8") for name in ("tls_key", "tls_certificate")]
        (directory / "keystore.pem").write_text("".join(both), encoding="utf-8")
        self.secured = f"127.0.0.1:{free_port()}"
        self._add_listener(directory / "server.properties", directory / "keystore.pem")

    def _add_listener(self, settings: Path, keystore: Path) -> None:
        lines = settings.read_text(encoding="utf-8").splitlines()
        found = dict(line.split("=", 1) for line in lines)
        for name in ("listeners", "advertised.listeners"):
            found[name] += f",SECURED://{self.secured}"
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        login = f'{module} required user_{USER}="{quoted}";'
        found |= {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
            "listener.name.secured.sasl.enabled.mechanisms": "PLAIN",
            # A file of Java's properties reads backslashes once more.
            "listener.name.secured.plain.sasl.jaas.config": login.replace("\\", "\\\\"),
            "listener.name.secured.ssl.keystore.type": "PEM",
            "listener.name.secured.ssl.keystore.location": str(keystore),
        }
        settings.write_text("\n".join(f"{name}={value}" for name, value in found.items()), encoding="utf-8")


@contextmanager
def kafka_server() -> Iterator[KafkaServer]:
    """A running server, which is gone in the end with all it kept."""
    with kafka.kafka_server(KafkaServer) as server:
        assert isinstance(server, KafkaServer)
        yield server


@contextmanager
def secured_kafka() -> Iterator[SecuredKafka]:
    """One that is secured."""
    with kafka.kafka_server(SecuredKafka) as server:
        assert isinstance(server, SecuredKafka)
        yield server
