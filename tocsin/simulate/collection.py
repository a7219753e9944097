"""Python's garbage collector, kept from looking again and again at a million objects of which none is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def suspend_collection() -> Iterator[None]:
    """Nothing is collected meanwhile: what a simulation makes, it mostly needs till its end."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # What is left counts as old, or all of it would be looked at right now for being new.
        gc.freeze()
        gc.unfreeze()
        if before:
            gc.enable()
