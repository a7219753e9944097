"""A content-based overlay on this machine: heads in a chain, and edges spread over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tocsin.http.listening import bind
from tocsin.local.part import Part, StartStep

_HOST: Final = "127.0.0.1"
# Whatever the settings are for, this one is for nobody else.
_ALONE: Final = {
    "overlay.host": _HOST,
    "overlay.url": "",
    "overlay.token": "",
    "overlay.client_token": "",
    "overlay.tls_certificate": "",
    "overlay.tls_key": "",
    "log.format": "text",
}


@dataclass(frozen=True)
class LocalOverlay:
    """The parts, their addresses and their settings.

    Args:
        directory: where heads keep their logs, and all of them what they say.
        heads: how many.
        edges: how many; an edge belongs to each head in turn.
        options: options of ``tocsin`` for all of them.
        of_all: settings by dotted name.
        of_edges: those of each edge, or empty.
    """

    directory: Path
    heads: int
    edges: int
    options: Sequence[str] = ()
    of_all: Mapping[str, object] | None = None
    of_edges: Sequence[Mapping[str, object]] = ()

    @cached_property
    def ports(self) -> dict[str, int]:
        """The port of each part: any that were free when it was first asked for."""
        with ExitStack() as held:
            # All are held until all are known, so that no two are given the same free one.
            listeners = {name: held.enter_context(bind("overlay", _HOST, 0)) for name in self.names}
            return {name: int(listener.getsockname()[1]) for name, listener in listeners.items()}

    @property
    def head_names(self) -> list[str]:
        """The names of the heads."""
        return [f"head-{number}" for number in range(1, self.heads + 1)]

    @property
    def edge_names(self) -> list[str]:
        """The names of the edges."""
        return [f"edge-{number}" for number in range(1, self.edges + 1)]

    @property
    def names(self) -> list[str]:
        """All names."""
        return [*self.head_names, *self.edge_names]

    def url(self, name: str) -> str:
        """Where a broker is connected to."""
        return f"ws://{_HOST}:{self.ports[name]}"

    @property
    def token(self) -> str:
        """None is needed."""
        return ""

    @property
    def groups(self) -> list[list[Part]]:
        """The parts, in the order in which they are needed."""
        return [[self._head(number) for number in range(self.heads)], [self._edge(at) for at in range(self.edges)]]

    @property
    def steps(self) -> list[StartStep]:
        """Edges begin when there are heads."""
        heads = f"{self.heads} heads" if self.heads > 1 else "a head"
        edges = f"{self.edges} edges" if self.edges > 1 else "an edge"
        return [
            StartStep(f"Starting {heads}", self.head_names, self.head_names),
            StartStep(f"Starting {edges}", self.edge_names, self.edge_names),
        ]

    @property
    def parting(self) -> str:
        """What is said while all are stopped."""
        return "Stopping the edges and heads"

    def _head(self, number: int) -> Part:
        name = self.head_names[number]
        next_one = self.url(self.head_names[number - 1]) if number else ""
        return self._part(name, "head", {"overlay.head": next_one, "overlay.directory": self.directory / name})

    def _edge(self, number: int) -> Part:
        head = self.url(self.head_names[number % self.heads])
        own = self.of_edges[number] if self.of_edges else {}
        return self._part(self.edge_names[number], "edge", {"overlay.head": head, **own})

    def _part(self, name: str, role: str, settings: Mapping[str, object]) -> Part:
        log = self.directory / "log" / f"{name}.log"
        every = {**_ALONE, **(self.of_all or {}), "overlay.name": name, "overlay.port": self.ports[name], **settings}
        return Part(name, ("overlay", role), f"http://{_HOST}:{self.ports[name]}", log, tuple(self.options), every)
