"""The protocol's page shows every message as it is: its examples decode, and its tables are complete."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from tests.pages import ROOT, blocks, prose, words
from tocsin.model import subscriber
from tocsin.model.subscriber import Answer, Code, Request, SubscriberMessage

PAGE = ROOT / "docs" / "protocol.md"
KINDS: list[type[SubscriberMessage]] = [*get_args(Request), *get_args(Answer)]


def examples() -> list[str]:
    """The messages of the page; one that is spread over lines goes on with an indented line."""
    return [text for block in blocks(PAGE, "json") for text in re.split(r"\n(?=\{)", block.strip())]


@pytest.mark.parametrize("text", examples())
def test_an_example_is_a_message_with_known_fields_only(text: str) -> None:
    message = msgspec.json.decode(text, type=Request | Answer)
    shown, real = msgspec.json.decode(text), msgspec.json.decode(msgspec.json.encode(message))
    assert shown.items() <= real.items()


def test_every_message_has_an_example_and_a_heading() -> None:
    kinds = {type(msgspec.json.decode(text, type=Request | Answer)) for text in examples()}
    assert kinds == set(KINDS)
    headings = set(re.findall(r"^### `(\w+)`$", prose(PAGE), re.MULTILINE))
    assert headings == {str(kind.__struct_config__.tag) for kind in KINDS}


def test_every_field_of_every_message_is_shown() -> None:
    shown = {name for text in examples() for name in re.findall(r'"(\w+)": ', text)}
    structs: list[type[msgspec.Struct]] = [*KINDS, subscriber.Held, subscriber.Note]
    assert {field for struct in structs for field in struct.__struct_fields__} - shown == set()


def test_every_close_code_is_in_the_table() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d{4}) \|", prose(PAGE), re.MULTILINE)}
    assert listed == {value for name, value in vars(Code).items() if name.isupper()} | {1001, 1009}


def test_the_version_is_the_one_that_is_spoken() -> None:
    assert f"This is version {subscriber.VERSION}." in prose(PAGE)
    assert "version" in words(PAGE)
