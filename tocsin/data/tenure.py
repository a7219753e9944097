"""That this process is the data cluster: the state is claimed, the directory locked, and a fence keeps others out.

Signs of life go to those who stand by; if one of them has taken over nevertheless, it is noticed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.data.fence import Fence, lock_directory, put_up_fence
from tocsin.data.store import SeenHead, Store, open_store
from tocsin.errors import StorageError, SupersededError, TocsinError
from tocsin.settings import DataSettings

BEAT_SECONDS: Final = 1.0


class Tenure:
    """From the opening of the ``store`` to its end; what is claimed in between is fenced by a term of its own.

    Args:
        superseded: called once, from another thread, when somebody else has taken over.
        silent: whom this one takes over from, though it has not ended in order.
    """

    def __init__(
        self, settings: DataSettings, superseded: Callable[[SupersededError], None], silent: SeenHead | None = None
    ) -> None:
        self._settings, self._silent = settings, silent
        # Where the state is a file in the directory, the lock comes first; else whoever has the state has both.
        self._lock = None if settings.state else lock_directory(settings.directory)
        try:
            self.store = open_store(settings)
        except BaseException:
            self._unlock()
            raise
        self._vigil = Vigil(self.store, superseded)

    def begin(self) -> Fence:
        """Claims state and directory, and keeps whoever had them before from writing; gives the fence that does."""
        self.store.claim(self._silent)
        if self._lock is None:
            self._lock = lock_directory(self._settings.directory, self.store.identity)
        fence = put_up_fence(self._settings.directory.resolve(), self.store)
        # Before what may take long: those who stand by would take over meanwhile.
        self._vigil.start(fence, beats=bool(self._settings.state))
        return fence

    def end(self, *, in_order: bool = False) -> None:
        """Lets go of everything; whoever stands by need not wait for its turn if this one ends ``in_order``."""
        if in_order:
            with suppress(TocsinError):
                self.store.head.end(self.store.term)
        self._vigil.stop()
        self.store.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Vigil:
    """Beats in a thread of its own, as long as this data cluster is the one.

    What can go wrong: the state is away (nobody else can take over meanwhile, and the next beat is tried as before);
    this process was held up and another has taken over (``superseded`` is called, once).
    """

    def __init__(self, store: Store, superseded: Callable[[SupersededError], None]) -> None:
        self._store, self._superseded = store, superseded
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, fence: Fence, *, beats: bool) -> None:
        """Begins to look at the fence; and to beat, if somebody can be waiting for that."""
        self._thread = threading.Thread(target=self._keep, args=(fence, beats), name="vigil", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self, fence: Fence, beats: bool) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            try:
                self._beat(fence, beats)
            except SupersededError as error:
                self._superseded(error)
                return

    def _beat(self, fence: Fence, beats: bool) -> None:
        with suppress(OSError):
            fence.check()
        if beats:
            with suppress(StorageError):
                self._store.head.beat(fence.term)
