from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.overlay.server.running import edge, head
from tocsin.errors import UnauthorizedError, UnavailableError
from tocsin.overlay.server.survey import survey


async def test_all_brokers_are_found_from_any(tmp_path: Path) -> None:
    async with head(tmp_path) as root, head(tmp_path, "h2", head=root) as second, edge(second) as url:
        for first in (root, second, url):
            found = await asyncio.to_thread(survey, first)
            assert {each.broker: each.role for each in found.brokers} == {"h": "head", "h2": "head", "e": "edge"}
            assert found.problems == []


async def test_why_nothing_can_be_shown_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="is 'tocsin overlay head' or 'tocsin overlay edge' running there"):
        survey("ws://127.0.0.1:1")
    async with head(tmp_path, client_token="secret") as root:
        with pytest.raises(UnauthorizedError, match="needs the overlay's clients' token"):
            await asyncio.to_thread(survey, root)
        assert len((await asyncio.to_thread(survey, root, "secret")).brokers) == 1
