"""The Spark session that a data cluster runs on: promised at once, started later, stopped if it is its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from pyspark.sql import SparkSession

from tocsin.data import session
from tocsin.errors import SparkEndedError
from tocsin.log import get_logger

log = get_logger(__name__)


class SparkEngine:
    """Runs on the session that is ``given``, or on one that it starts.

    What can go wrong: Spark does not start (whoever waits for ``promise`` gets the error); its process ends without
    being asked to (``ended`` is called, from another thread).

    Args:
        keep: whether the session that is given is left running in the end.
        ended: called with what to say.
    """

    def __init__(self, given: SparkSession | None, keep: bool, ended: Callable[[SparkEndedError], None]) -> None:
        self._given, self._owned, self._ended = given, given is None or not keep, ended
        self.promise: Future[SparkSession] = Future()
        self._stopping = False

    def start(self, start: Callable[[], SparkSession]) -> None:
        """Keeps the promise, by ``start`` if no session was given."""
        try:
            self.promise.set_result(self._given or start())
        except Exception as error:
            self.promise.set_exception(error)
            raise
        if self._owned:
            threading.Thread(target=self._watch, name="spark-watch", daemon=True).start()

    def expect_end(self) -> None:
        """That Spark's process ends is no news from now on."""
        self._stopping = True

    def stop(self) -> None:
        """Stops the session, unless others go on with it."""
        if self._owned and self.promise.done() and self.promise.exception() is None:
            session.stop(self.promise.result())

    def _watch(self) -> None:
        status = session.wait_for_end(self.promise.result())
        if not self._stopping:
            log.error("Spark's process has ended", status=status)
            self._ended(
                SparkEndedError(
                    "Spark's process has ended, perhaps for want of memory; start the data cluster again, and it goes "
                    "on where it was"
                )
            )
