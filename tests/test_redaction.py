"""Secrets do not show, however they get into a text; everything else does."""

from __future__ import annotations

import json

import pytest

from tocsin.redaction import HIDDEN, Redactor, is_secret, password, redact
from tocsin.settings import BrokerSettings, CoordinatorSettings, Settings, SparkSettings
from tocsin.settings.secrets import secrets, show_value

SECRETS = [
    "Authorization: Bearer hunter2hunter2",
    "headers {'Authorization': 'bearer hunter2hunter2'}",
    "> Authorization: Bearer+hunter2hunter2",
    "postgresql://tocsin:hunter2hunter2@db.example.org/tocsin",
    "postgresql://tocsin:hunter2/hunter2@db.example.org/tocsin",
    "postgresql://tocsin:hunter2@hunter2@db.example.org/tocsin",
    "postgresql://db.example.org/tocsin?user=tocsin&password=hunter2hunter2",
    "abfss://box.example.org/path?sv=1&sig=hunter2hunter2#part",
    'said {"type": "login", "token": "hunter2hunter2"}',
    'said {\\"type\\": \\"accepted\\", \\"key\\": \\"hunter2hunter2\\"}',
    "said {'fs.s3a.secret.key': 'hunter2hunter2'}",
    "eyJuYW1lIjoiaHVudGVyMiIsInJvbGUiOiJicm9rZXIifQ.hunter2hunter2",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_taken_out(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert HIDDEN in redact(text)
    assert "hunter2" not in redact(json.dumps(text))


@pytest.mark.parametrize(
    "text",
    [
        "link is up url=http://127.0.0.1:8800/control?broker=north",
        "ws://127.0.0.1:8701/subscriber of ann@example.org",
        "http://127.0.0.1:8700/status of ann@example.org",
        "the token of north is no longer valid: ask the coordinator for a new one",
        "a broker is refused broker=south token_of=north",
        "http://[::1]:8800/feeds/reports",
        '{"message": "call answered", "caller": "olga", "tokens": 3, "primary_key": "id"}',
    ],
)
def test_all_else_stays(text: str) -> None:
    assert redact(text) == text


def test_given_secrets_are_taken_out_wherever_they_are_unless_they_are_words() -> None:
    redactor = Redactor(["correct horse", 'quo"ted\\secret', "demo", ""])
    assert redactor("xcorrect horsex") == f"x{HIDDEN}x"
    assert "ted" not in redactor(json.dumps({"a": 'quo"ted\\secret'}))
    assert redactor("the demo is over") == "the demo is over"


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "fs.azure.account.key.box",
        "spark.ssl.keyPassword",
        "spark.authenticate.secret",
        "spark.hadoop.fs.azure.sas.box",
        "javax.jdo.option.ConnectionPassword",
        "some.apiKey",
    ],
)
def test_a_name_tells_what_is_secret(name: str) -> None:
    assert is_secret(name)
    settings = Settings(spark=SparkSettings(extra={name: "hunter2hunter2"}))
    assert "hunter2" not in show_value("spark.extra", settings.spark.extra)
    assert "hunter2" not in show_value(f"spark.extra.{name}", "hunter2hunter2")
    assert secrets(settings) == {"hunter2hunter2"}


@pytest.mark.parametrize("name", ["spark.sql.ansi.enabled", "spark.keyspace", "spark.monkey", "spark.path"])
def test_other_names_are_shown(name: str) -> None:
    assert show_value(f"spark.extra.{name}", "true") == '"true"'


def test_the_secrets_of_the_settings_are_known() -> None:
    settings = Settings(
        broker=BrokerSettings(token="one", data_token="two"),
        coordinator=CoordinatorSettings(store="postgresql://tocsin:three@db.example.org/tocsin"),
    )
    assert secrets(settings) == {"one", "two", "three"}
    assert secrets(Settings()) == set()


def test_a_url_without_a_password_has_none() -> None:
    assert password("postgresql://tocsin@db.example.org:5432/tocsin") == ""
    assert password("http://127.0.0.1:8700") == ""
