"""What a demo on hosts says before it begins: of each server that is missing, what is done without it."""

from __future__ import annotations

import re

import pytest

from tests.pages import ROOT
from tocsin.demo.performance import missing
from tocsin.local.infrastructure import KAFKA, POSTGRESQL, S3

SERVERS = {POSTGRESQL: "PostgreSQL is not installed", KAFKA: "Kafka is not installed", S3: "There is no S3 server"}


def test_nothing_is_said_of_servers_that_are_there() -> None:
    assert missing(["people", *SERVERS]) == []


@pytest.mark.parametrize("name", SERVERS)
def test_it_is_said_of_each_what_is_done_without_it_and_how_to_get_it(name: str) -> None:
    [sentence] = missing([one for one in SERVERS if one != name])
    assert sentence.startswith(SERVERS[name])
    assert f"pip install 'tocsin[{name}]'" in sentence
    assert all((ROOT / script).exists() for script in re.findall(r"scripts/[\w-]+", sentence))
