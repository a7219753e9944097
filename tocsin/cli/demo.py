"""``tocsin demo``: the emergency application on a data cluster of its own, in one command."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tocsin import log
from tocsin.cli import invocation, messages, output
from tocsin.errors import StorageError
from tocsin.settings import Settings

if TYPE_CHECKING:
    from tocsin.apps.emergency import World
    from tocsin.demo.cast import Part
    from tocsin.demo.screen import Screen


def demo(
    context: typer.Context,
    seconds: Annotated[
        int | None, typer.Option("--seconds", min=1, help="Publish for so long, then end; else until Ctrl-C")
    ] = None,
    people: Annotated[int, typer.Option("--people", min=1, max=20_000, help="How many people move about")] = 400,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same city")] = 7,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the data there; else they are removed at the end")
    ] = None,
) -> None:
    """Watch the emergency application at work: a seeded city, seven channels, a few subscribers.

    Starts a data cluster on a free port of this machine, publishes every second where everyone is and what is reported,
    and prints what each subscription finds.
    """
    import asyncio
    from datetime import UTC, datetime

    import uvloop

    from tocsin.apps.emergency import World

    settings = invocation(context).settings
    world = World(seed, people=people, start=datetime.now(UTC).replace(microsecond=0))
    with (
        _directory(keep) as directory,
        _log_in(keep),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_run(_own(settings, directory), world, seconds))
    if keep:
        output.print(f"The data are kept in {keep}, with the log in demo.log.", soft_wrap=True)


def _own(settings: Settings, directory: Path) -> Settings:
    """The settings, but for a directory of the demo's and a free port that only this machine reaches."""
    import msgspec

    data = msgspec.structs.replace(settings.data, directory=directory, host="127.0.0.1", port=0)
    return msgspec.structs.replace(settings, data=data)


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="tocsin-demo-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{keep} cannot be made: {error.strerror}; give --keep another directory") from None
    yield keep


@contextmanager
def _log_in(keep: Path | None) -> Iterator[None]:
    """Sends the logs, and what Spark's processes write to standard error, to a file: the screen is the demo's.

    The file stays, and is named, when the demo fails.
    """
    path = keep / "demo.log" if keep else Path(tempfile.mkstemp(prefix="tocsin-demo-", suffix=".log")[1])
    try:
        with path.open("a", encoding="utf-8") as file, _standard_error_to(file.fileno()):
            log.configure("info", "text", file)
            # It would log every second of the demo.
            logging.getLogger("httpx").setLevel(logging.WARNING)
            yield
    except Exception:
        messages.print(f"The log is in {path}", soft_wrap=True)
        raise
    finally:
        log.configure("error")
    if not keep:
        path.unlink()


@contextmanager
def _standard_error_to(descriptor: int) -> Iterator[None]:
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


async def _run(settings: Settings, world: World, seconds: int | None) -> None:
    import asyncio

    from tocsin.cli.connection import Server
    from tocsin.data.server.access import DEMO_TOKEN
    from tocsin.demo.cast import cast
    from tocsin.demo.play import Play
    from tocsin.demo.screen import Screen
    from tocsin.demo.stage import stage

    parts, ended = cast(world), asyncio.Event()
    screen = Screen(_console(), parts)
    screen.say("Tocsin: subscribe to queries over big data, and be told what is new for you.", style="bold")
    screen.say(f"A seeded city: {len(world.subscribers):,} people move about, and emergencies are reported.\n")
    async with stage(settings, ended) as data:
        with Server(data.url, DEMO_TOKEN) as server:
            play = Play(server, DEMO_TOKEN, world, parts, screen, ended)
            with screen.waiting("Starting Spark"):
                await data.ready()
            await play.prepare()
            if not ended.is_set():
                _invite(screen, parts[0], data.url, seconds)
                await play.run(seconds)
                play.conclude()
        screen.say("\nStopping, once the executions at hand have ended …")


def _console() -> Console:
    """Standard output; where that is no terminal, wide enough for the tables."""
    return output if output.is_terminal else Console(highlight=False, width=120)


def _invite(screen: Screen, part: Part, url: str, seconds: int | None) -> None:
    """What to expect, and what to try meanwhile: ``part`` is who will be told of a report of one's own."""
    until = f"for {seconds} seconds" if seconds else "until you press Ctrl-C"
    there = f"--server {url} --token demo"
    # Graver than any report of the world's, so that it is the one to be shown.
    report = f'"id": "mine-1", "etype": "{part.parameters["event"]}", "severity": 9, "message": "My own report"'
    screen.say(f"\nThe data cluster listens on {url}; its calls are described at {url}/docs")
    screen.say(f"Try in another terminal, and see {part.who} being told of your report:")
    screen.say(f"  {_program()} show channels {there}")
    screen.say(f"  echo '{{{report}}}' | {_program()} publish reports - {there}")
    screen.say(f"\nPublishing {until}. Channels run every 10 to 30 seconds, so the first finds take a moment.\n")


def _program() -> str:
    """How to call this program from another terminal."""
    if shutil.which("tocsin"):
        return "tocsin"
    return sys.argv[0] if Path(sys.argv[0]).name == "tocsin" else f"{sys.executable} -m tocsin"
