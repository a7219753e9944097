"""What browsers get: the JavaScript client, an ES module that brokers and the coordinator serve as it is."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

CLIENT: Final = "tocsin.js"


def client() -> bytes:
    """The text of the JavaScript client."""
    return files(__name__).joinpath(CLIENT).read_bytes()
