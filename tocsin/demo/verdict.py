"""How a demo ends if it does not end well."""

from __future__ import annotations

from tocsin.errors import TocsinError


class WrongError(TocsinError):
    """What was delivered is not what had to be."""

    code = "wrong"

    def __init__(self) -> None:
        super().__init__(
            "not everybody got what was for them, once and in order: this is a fault in Tocsin; please report it "
            "with the logs"
        )
