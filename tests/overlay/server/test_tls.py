"""Brokers of the overlay with certificates: links, clients and calls all go over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.certificate import authority
from tests.running import running
from tests.waiting import SECONDS
from tocsin.errors import UnavailableError
from tocsin.overlay.client import connect
from tocsin.overlay.server.serve import run_edge, run_head
from tocsin.overlay.server.survey import survey
from tocsin.settings.overlay import OverlaySettings


@asynccontextmanager
async def secured(directory: Path) -> AsyncIterator[tuple[str, str, str]]:
    """A head and an edge with certificates of an authority: their URLs, and its file."""
    ca, files = authority(directory)
    of_head = OverlaySettings(name="h", port=0, directory=directory / "h", **files)  # type: ignore[arg-type]
    async with running(lambda listening: run_head(of_head, ca=ca, listening=listening)) as root:
        of_edge = OverlaySettings(name="e", port=0, head=root, **files)  # type: ignore[arg-type]
        async with running(lambda listening: run_edge(of_edge, ca=ca, listening=listening)) as url:
            yield root, url, ca


async def test_brokers_and_clients_speak_tls_with_an_authority_that_they_know(tmp_path: Path) -> None:
    async with secured(tmp_path) as (root, url, ca):
        assert (root[:6], url[:6]) == ("wss://", "wss://")
        async with connect(root, ca=ca) as publisher, connect(url, ca=ca) as me:
            subscription = await me.subscribe("high > 1")
            await publisher.publish({"high": 2})
            async with asyncio.timeout(SECONDS):
                assert (await anext(subscription)).content == {"high": 2}
        assert len((await asyncio.to_thread(survey, url, ca=ca)).brokers) == 2


async def test_who_does_not_know_the_authority_does_not_trust_it(tmp_path: Path) -> None:
    async with secured(tmp_path) as (root, url, _):
        async with connect(url) as me:
            with pytest.raises(UnavailableError, match="certificate"):
                await me.subscribe("high > 1")
        async with connect(root) as publisher:
            with pytest.raises(UnavailableError, match="certificate"):
                await publisher.publish({"high": 2})


async def test_who_speaks_no_tls_is_not_served(tmp_path: Path) -> None:
    async with secured(tmp_path) as (root, _, ca):
        async with connect(root.replace("wss", "ws")) as publisher:
            with pytest.raises(UnavailableError, match="no head can be published to"):
                await publisher.publish({"high": 2})
        async with connect(root, ca=ca) as publisher:
            await publisher.publish({"high": 2})
