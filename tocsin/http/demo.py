"""The demo token: one that everyone knows, for trying things out on one machine."""

from __future__ import annotations

from typing import Final

from tocsin.errors import SettingsError
from tocsin.http.listening import is_loopback

DEMO_TOKEN: Final = "demo"
_COMMANDS: Final = {"data": "tocsin token add"}


def check_demo(section: str, host: str) -> None:
    """Raises SettingsError unless ``host`` can be reached from this machine only: a demo token is no secret.

    ``section`` is that of the settings ``host`` comes from.
    """
    if not is_loopback(host):
        command = _COMMANDS.get(section, "tocsin token sign")
        raise SettingsError(
            f"the demo token is known to everyone, and {section}.host = {host} can be reached from other machines: "
            f"listen on 127.0.0.1, or make tokens with '{command}'"
        )
