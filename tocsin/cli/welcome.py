"""What ``tocsin up`` does once everything runs: applies the application, and tells a person where to go from here."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import typer

from tocsin.apps.emergency import APPLICATION
from tocsin.cli.apply import apply
from tocsin.cli.connection import RemoteServer
from tocsin.errors import TocsinError
from tocsin.local.invitation import Example, example
from tocsin.local.network import COORDINATOR, DATA, TOKEN, LocalNetwork
from tocsin.local.running import told
from tocsin.local.screen import NetworkScreen
from tocsin.model.messages import Listed
from tocsin.settings import Settings
from tocsin.tasks import until_one_ends


class WelcomeScreen:
    """To a network, on a screen. Without ``app``, a network that has no channels gets the emergency application."""

    def __init__(self, context: typer.Context, network: LocalNetwork, screen: NetworkScreen, app: Path | None) -> None:
        self._context, self._network, self._screen, self._app = context, network, screen, app

    async def give(self, ended: asyncio.Event) -> None:
        """Gives it, and returns when ``ended`` is set."""
        await until_one_ends(self._give(), told(ended))

    async def _give(self) -> None:
        await asyncio.to_thread(self._apply)
        self._addresses()
        self._invite(await asyncio.to_thread(self._example))
        self._screen.say("\nCtrl-C stops everything; the same command again goes on where it was.\n")
        await asyncio.Event().wait()

    def _apply(self) -> None:
        if not self._app and self._list("channels"):
            return
        file = self._app or APPLICATION
        try:
            with self._screen.busy(f"Applying {self._app or 'the emergency application'}, which Spark checks"):
                apply(self._context, file, self._network.url(DATA), TOKEN)
        except (typer.Exit, TocsinError) as error:
            if isinstance(error, TocsinError):
                self._screen.trouble(str(error))
            command = f"{program()} apply {file}{self._there('--server', DATA)} --token {TOKEN}"
            self._screen.trouble(
                f"The application is not there as a whole. Correct the file if need be, then: {command}"
            )

    def _addresses(self) -> None:
        network, say = self._network, self._screen.say
        say("\nTocsin is up.", "bold green")
        say(f"  coordinator   {network.url(COORDINATOR)}  (programs connect here)")
        say(f"  data cluster  {network.url(DATA)}  (its calls: {network.url(DATA)}/docs)")
        for name in network.names:
            say(f"  {name:<12}  {network.url(name)}")

    def _invite(self, example: Example | None) -> None:
        coordinator, data = self._there("--coordinator", COORDINATOR), self._there("--server", DATA)
        call, say = program(), self._screen.say
        if example is None:
            say("\nThere is no application yet. In another terminal:")
            say(f"  {call} apply FILE.sql{data} --token {TOKEN}")
            return
        say("\nTry in other terminals:")
        say(f"  {call} subscribe {example.subscription} --user me{coordinator} --token {TOKEN}")
        say(f"  echo '{example.text}' | {call} publish {example.feed} -{data} --token {TOKEN}")
        say(f"  {call} top{coordinator} --token {TOKEN}")

    def _example(self) -> Example | None:
        return example(self._list("channels"), self._list("feeds"), self._list("datasets"))

    def _list(self, what: str) -> list[dict[str, Any]]:
        with RemoteServer(self._network.url(DATA), TOKEN) as data:
            return msgspec.json.decode(data.get(f"/{what}"), type=Listed).items

    def _there(self, option: str, name: str) -> str:
        """The option that leads to a part, unless that is where commands go by themselves."""
        usual = {DATA: Settings().data.port, COORDINATOR: Settings().coordinator.port}[name]
        return "" if self._network.ports[name] == usual else f" {option} {self._network.url(name)}"


def program() -> str:
    """The command that runs it from another terminal."""
    if shutil.which("tocsin"):
        return "tocsin"
    return sys.argv[0] if Path(sys.argv[0]).name == "tocsin" else f"{sys.executable} -m tocsin"
