"""A network from its first process to its last, with small programs in place of the real ones."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.local.conftest import Make
from tocsin.local.child import DidNotStartError
from tocsin.local.network import LocalNetwork
from tocsin.local.part import Part
from tocsin.local.running import Running
from tocsin.local.screen import NetworkScreen
from tocsin.settings import Settings


class SmallNetwork(LocalNetwork):
    """Its parts are those of the test."""

    def of(self, data: Part, coordinator: Part, broker: Part) -> SmallNetwork:
        object.__setattr__(self, "_parts", (data, coordinator, broker))
        return self

    def data(self) -> Part:
        return self._given[0]

    def coordinator(self) -> Part:
        return self._given[1]

    def broker_parts(self) -> list[Part]:
        return [self._given[2]]

    @property
    def _given(self) -> tuple[Part, Part, Part]:
        parts: tuple[Part, Part, Part] = self.__dict__["_parts"]
        return parts


@pytest.fixture
def paper() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(paper: io.StringIO) -> NetworkScreen:
    return NetworkScreen(Console(file=paper, width=200, highlight=False))


def network(part: Make, tmp_path: Path, *manners: str) -> SmallNetwork:
    parts = (part("data"), part("coordinator"), part("broker-1", *manners))
    return SmallNetwork(Settings(), tmp_path, 1).of(*parts)


async def test_all_is_up_when_its_turn_comes_and_gone_in_the_end(
    part: Make, tmp_path: Path, screen: NetworkScreen, paper: io.StringIO
) -> None:
    async def then() -> None:
        screen.say("up")

    await Running(network(part, tmp_path), screen).run(asyncio.Event(), then)
    said = [line.partition(" …")[0] for line in paper.getvalue().splitlines()]
    assert said == [
        "Starting the coordinator",
        "Starting 1 broker",
        "Starting the data cluster, on Spark",
        "up",
        "Stopping the brokers, the coordinator and the data cluster",
    ]


async def test_whoever_ends_it_while_it_starts_does_not_wait(part: Make, tmp_path: Path, screen: NetworkScreen) -> None:
    async def then() -> None:
        raise AssertionError("it is not to come to this")

    ended = asyncio.Event()
    ended.set()
    await Running(network(part, tmp_path, "starting"), screen).run(ended, then)


async def test_a_part_that_does_not_start_is_shown_with_its_last_words(
    part: Make, tmp_path: Path, screen: NetworkScreen, paper: io.StringIO
) -> None:
    async def then() -> None:
        raise AssertionError("it is not to come to this")

    with pytest.raises(DidNotStartError, match="broker-1 ended with status 1"):
        await Running(network(part, tmp_path, "ends"), screen).run(asyncio.Event(), then)
    assert "The last lines of its log:\n  error: the port is haunted\n" in paper.getvalue()
