"""A Kafka that speaks TLS and wants to know who we are: our own clients and Spark come in, others are told why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kafka import PASSWORD, USER, SecuredKafka, secured_kafka
from tocsin.data.feeds.access import OPEN, KafkaAccess
from tocsin.data.feeds.kafka import KafkaLog
from tocsin.data.nodes.reading import open_slices
from tocsin.data.store import Store
from tocsin.errors import SettingsError, UnavailableError
from tocsin.schema.definitions import Feed
from tocsin.settings import FeedsSettings
from tocsin.settings.secrets import secrets
from tocsin.settings.sections import Settings

FEED = Feed("orders", "Orders", "id", 2)


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredKafka]:
    with secured_kafka() as running:
        yield running


@pytest.fixture
def access(secured: SecuredKafka) -> KafkaAccess:
    return KafkaAccess("sasl_ssl", secured.ca, "PLAIN", USER, PASSWORD)


@pytest.mark.kafka
@pytest.mark.spark
def test_what_is_published_is_read_by_spark_in_the_same_way(
    secured: SecuredKafka, access: KafkaAccess, spark: SparkSession, tmp_path: Path
) -> None:
    with Store(tmp_path) as store:
        log = KafkaLog(secured.secured, secured.prefix(), FEED, store.topics, [0, 0], access).open()
        assert log.append({0: [b"one"], 1: [b"two", b"three"]}) == [1, 2]
        slices = open_slices(log.address(), access)
        lines = slices.lines(spark, slices.ranges({0: 0, 1: 0}, 1 << 20)).collect()
        log.remove()
        log.close()
    assert sorted((row["slice"], row["line"]) for row in lines) == [(0, "one"), (1, "three"), (1, "two")]


@pytest.mark.kafka
@pytest.mark.parametrize("wrong", ["password", "plaintext", "authority"])
def test_who_is_not_known_or_does_not_know_kafka_is_refused(
    secured: SecuredKafka, access: KafkaAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setattr("tocsin.data.feeds.sliced_topic.CALL_SECONDS", 3.0)
    chosen = {"password": replace(access, password="guessed"), "plaintext": OPEN, "authority": replace(access, ca="")}
    reasons = {"password": "SASL authentication error", "plaintext": secured.secured, "authority": "certificate"}
    with Store(tmp_path) as store, pytest.raises(UnavailableError, match=reasons[wrong]):
        KafkaLog(secured.secured, secured.prefix(), FEED, store.topics, [0, 0], chosen[wrong]).open()


def test_what_is_missing_is_said() -> None:
    with pytest.raises(SettingsError, match=r"sasl_ssl.*feeds\.kafka_user and feeds\.kafka_password"):
        KafkaAccess.of(FeedsSettings(kafka_security="sasl_ssl", kafka_user="tocsin"))


def test_the_password_is_a_secret() -> None:
    assert "x1y2z3" in secrets(Settings(feeds=FeedsSettings(kafka_password="x1y2z3")))


def test_spark_is_told_the_same_in_its_own_words() -> None:
    told = KafkaAccess("sasl_ssl", "/ca.pem", "SCRAM-SHA-256", "me", 'a"b\\').spark()
    assert told["kafka.security.protocol"] == "SASL_SSL"
    assert told["kafka.ssl.truststore.location"] == "/ca.pem"
    assert told["kafka.sasl.jaas.config"].endswith(r'ScramLoginModule required username="me" password="a\"b\\";')
    assert OPEN.spark() == {"kafka.security.protocol": "PLAINTEXT"}
