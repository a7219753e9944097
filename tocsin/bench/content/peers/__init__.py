"""Other matchers, each with a program of ours that drives it: built here, outside of the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tocsin.bench.content.contestant import Entry
from tocsin.bench.content.peers import a_tree
from tocsin.bench.content.peers.padres import compile_harness
from tocsin.errors import UnavailableError


def find_peers(padres: Path | None, directory: Path, note: Callable[[str], None]) -> Iterator[Entry]:
    """All that can be had here; who is left out is noted, with the reason."""
    if padres is None:
        note("PADRES is left out: --padres says where it is built")
    else:
        yield compile_harness(padres, directory)
    try:
        yield a_tree.build()
    except UnavailableError as error:
        note(str(error))
