"""The page of the overlay's protocol shows every message as it is, and each bound that clients meet."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from tests.pages import ROOT, blocks, prose
from tocsin.content.language import MOST_TEXT
from tocsin.content.values import MOST_ATTRIBUTES, MOST_CHARACTERS, MOST_NAME_CHARACTERS
from tocsin.http import websocket
from tocsin.overlay import subscriber
from tocsin.overlay.dialogue import ToEdge, ToHead, ToPublisher, ToSubscriber
from tocsin.overlay.head import MOST_SKIPPED
from tocsin.overlay.server.clients import BURST, MOST_CURSORS, PER_SECOND
from tocsin.overlay.server.outgoing import EXPIRED, UNREAD, UNREADABLE
from tocsin.settings.overlay import OverlaySettings

PAGE = ROOT / "docs" / "overlay-protocol.md"
MESSAGE = ToEdge | ToHead | ToSubscriber | ToPublisher
KINDS = set(get_args(MESSAGE))
EXAMPLES = [text.strip() for text in blocks(PAGE, "json")]


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_a_message_with_known_fields_only(text: str) -> None:
    message = msgspec.json.decode(text, type=MESSAGE)
    shown = msgspec.json.decode(text)
    assert set(shown) == {"type", *message.__struct_fields__}


def test_every_message_has_an_example_and_a_heading() -> None:
    assert {type(msgspec.json.decode(text, type=MESSAGE)) for text in EXAMPLES} == KINDS
    headings = set(re.findall(r"^### `(\w+)`$", prose(PAGE), re.MULTILINE))
    assert headings == {kind.__name__ for kind in KINDS}


def test_every_close_code_is_in_the_table() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d{4}) \|", prose(PAGE), re.MULTILINE)}
    assert listed == {EXPIRED, UNREADABLE, UNREAD, 1008, 1009, 1012}


def test_the_bounds_it_names_are_those() -> None:
    text, settings = " ".join(prose(PAGE).split()), OverlaySettings()
    assert (settings.message_bytes, settings.waiting_bytes) == (64 << 10, 4 << 20)
    assert f"remembers {settings.publishers:,} publishers" in text
    assert f"{BURST:.0f} messages other than `Publish` at once, and {PER_SECOND:.0f} a second" in text
    assert f"up to {MOST_TEXT:,} characters" in text
    assert f"Up to {MOST_CURSORS:,}" in text
    assert f"Up to {MOST_ATTRIBUTES} attributes; names have 1 to {MOST_NAME_CHARACTERS} printable" in text
    assert f"strings up to {MOST_CHARACTERS:,} characters" in text
    assert f"send {websocket.BURST:,.0f} at once, and {websocket.PER_SECOND:.0f} a second for long" in text
    assert f"messages below {websocket.SMALL_BYTES} bytes" in text
    assert MOST_SKIPPED == 1_000_000
    assert (
        f"up to {subscriber.FIRST_WAIT:g} seconds at first and doubles that up to {subscriber.LONGEST_WAIT:g}" in text
    )
