"""A sandbox where something happens without being told to."""

from __future__ import annotations

import asyncio
from typing import Any

from tocsin.model import control
from tocsin.testing.sandbox import Sandbox
from tocsin.testing.wires import NOWHERE


class Lively(Sandbox):
    """Every channel is executed twice as soon as somebody wants it."""

    def _answer(self, broker: str, request: control.Request) -> Any:
        if isinstance(request, control.Attach) and request.channel != NOWHERE:
            asyncio.get_running_loop().call_soon(self.execute, self.data.spelling_of(request.channel), 2)
        return super()._answer(broker, request)
