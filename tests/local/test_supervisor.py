"""The supervisor with real processes, which misbehave as they are told to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.local.conftest import Make
from tocsin.local.child import DidNotStartError
from tocsin.local.part import Part
from tocsin.local.supervisor import Supervisor


class Sentences(list[str]):
    """What was said, and a way to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._said = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.append(text)
        self._said.set()

    async def until(self, condition: Callable[[str], bool]) -> str:
        """The first sentence of that kind, once it is said."""
        async with asyncio.timeout(60):
            while not (found := [text for text in self if condition(text)]):
                self._said.clear()
                await self._said.wait()
        return found[0]


async def test_parts_are_ready_when_they_say_so_and_stop_the_last_first(part: Make) -> None:
    said, order = Sentences(), list[str]()
    async with Supervisor([part("data")], [part("b1"), part("b2")], say=said, token="demo") as network:
        await network.start("data")
        await network.start("b1", "b2")
        await network.ready("data", "b1", "b2")
        ends = [asyncio.create_task(_note(network, name, order)) for name in ("data", "b1", "b2")]
        await asyncio.sleep(0)
    await asyncio.gather(*ends)
    assert order[-1] == "data"
    assert not said


async def test_one_that_may_stand_by_is_ready_when_it_does_and_another_is_not(part: Make) -> None:
    other, one = part("other", "standby", ready_seconds=1), replace(part("data", "standby"), stands_by=True)
    async with Supervisor([one], [other], say=Sentences(), token="demo") as network:
        await network.start("data", "other")
        await network.ready("data")
        with pytest.raises(DidNotStartError, match="other was not ready"):
            await network.ready("other")


async def test_one_that_only_takes_connections_is_ready_when_it_does(part: Make) -> None:
    http = part("data", "starting")
    async with Supervisor([replace(http, url=http.url.replace("http:", "tcp:"))], say=Sentences(), token="") as network:
        await network.start("data")
        await network.ready("data")


async def test_a_part_is_given_its_environment(tmp_path: Path) -> None:
    program = (sys.executable, "-c", "import os; raise SystemExit(os.environ['WORD'])")
    part = Part("data", (), "tcp://127.0.0.1:1", tmp_path / "log", program=program, environment={"WORD": "hello"})
    async with Supervisor([part], say=Sentences(), token="") as network:
        with pytest.raises(DidNotStartError) as failed:
            await network.start("data")
    assert failed.value.lines == ["hello"]


async def test_one_that_ends_before_it_is_ready_is_given_up_with_its_last_words(part: Make) -> None:
    async with Supervisor([part("data", "ends")], say=Sentences(), token="demo") as network:
        with pytest.raises(DidNotStartError, match=r"^data ended with status 1; its log is ") as failed:
            await network.start("data")
    assert failed.value.lines == ["error: the port is haunted"]


async def test_one_that_is_never_ready_is_given_up_in_time(part: Make) -> None:
    slow = part("data", "starting", ready_seconds=0.3)
    async with Supervisor([slow], say=Sentences(), token="demo") as network:
        with pytest.raises(DidNotStartError, match=r"^data was not ready within 0\.3 s"):
            await _started(network, "data")
        assert network.child("data").running
    assert not network.child("data").running


async def test_one_that_is_killed_is_started_again_and_all_is_said(part: Make) -> None:
    said = Sentences()
    async with Supervisor([part("b1")], say=said, token="demo", first_wait=0.01) as network:
        await network.start("b1")
        watching = asyncio.create_task(network.watch())
        before = network.child("b1").id
        os.kill(before, signal.SIGKILL)
        await said.until(lambda text: text == "b1 is back.")
        assert network.child("b1").id != before
        watching.cancel()
    assert said[0].startswith("b1 was ended by SIGKILL; starting it again in 0.01 s. Its log: ")


async def test_one_that_has_died_before_anybody_watched_is_started_again_too(part: Make) -> None:
    said = Sentences()
    async with Supervisor([part("b1")], say=said, token="demo", first_wait=0.01) as network:
        await network.start("b1")
        os.kill(network.child("b1").id, signal.SIGKILL)
        await network.child("b1").wait()
        watching = asyncio.create_task(network.watch())
        await said.until(lambda text: text == "b1 is back.")
        watching.cancel()


@pytest.mark.slow
async def test_one_that_dies_at_every_start_ends_the_watch(part: Make, tmp_path: Path) -> None:
    said = Sentences()
    healthy = part("b1")
    async with Supervisor([healthy], say=said, token="demo", first_wait=0.001) as network:
        await network.start("b1")
        child = network.child("b1")
        child.part = part("b1", "ends")
        os.kill(child.id, signal.SIGKILL)
        with pytest.raises(DidNotStartError, match="b1 ended with status 1, for the 6th time in a row"):
            await asyncio.wait_for(network.watch(), 60)
    assert len(said) == 5


async def test_warnings_are_shown_with_the_name_of_who_gave_them(part: Make) -> None:
    said = Sentences()
    async with Supervisor([part("b1", "complains")], say=said, token="demo") as network:
        await network.start("b1")
        watching = asyncio.create_task(network.watch())
        assert await said.until(bool) == "b1: warning: something is odd where=here"
        watching.cancel()


async def test_one_that_does_not_stop_is_killed_and_that_is_said(part: Make) -> None:
    said = Sentences()
    async with Supervisor([part("b1", "deaf", stop_seconds=0.2)], say=said, token="demo") as network:
        await network.start("b1")
    assert said == ["b1 did not stop within 0.2 s and was killed."]
    assert not network.child("b1").running


@pytest.mark.slow
def test_nobody_outlives_a_supervisor_that_is_killed(part: Make) -> None:
    running = part("b1")
    script = textwrap.dedent(f"""
        import asyncio, pathlib, sys
        from tocsin.local.part import Part
        from tocsin.local.supervisor import Supervisor

        async def main():
            part = Part("b1", {running.command!r}, {running.url!r}, pathlib.Path({str(running.log)!r}),
                        program={running.program!r})
            async with Supervisor([part], say=print, token="demo") as network:
                await network.start("b1")
                print(network.child("b1").id, flush=True)
                await asyncio.Event().wait()

        asyncio.run(main())
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        child = psutil.Process(int(supervisor.stdout.readline()))
        supervisor.kill()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running()


async def _started(network: Supervisor, name: str) -> None:
    await network.start(name)
    await network.ready(name)


async def _note(network: Supervisor, name: str, order: list[str]) -> None:
    await network.child(name).wait()
    order.append(name)
