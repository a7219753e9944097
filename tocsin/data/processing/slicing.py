"""Slices that a function of one's own chooses: in a process of its own, in a bounded time, and off the event loop."""

from __future__ import annotations

import asyncio
import pickle
import time
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tocsin.data.processing.bisection import Patience, try_parts
from tocsin.data.processing.contract import FunctionFaultError
from tocsin.data.processing.host import NO_SLICE
from tocsin.data.processing.process import HostedFunction
from tocsin.errors import BusyError, InvalidError, UnavailableError
from tocsin.functions import require_allowed
from tocsin.log import get_logger
from tocsin.schema.definitions import Dataset, Feed
from tocsin.settings import FeedsSettings
from tocsin.slices.assignment import follows_key, slice_without_function

log = get_logger(__name__)

CUT: Final = 1000
_MOST_WAITING: Final = 64
_AGAIN_SECONDS: Final = 10.0
# What a start of the process costs the function's patience, of a batch's: how long it takes is the machine's fault.
_START: Final = 0.1


class SlicingProcess(HostedFunction):
    """Asks a function for the slices of values."""

    kind = "slices"

    def run(self, values: Sequence[Any], slices: int, seconds: float) -> list[int]:
        """The slice of each value, or ``NO_SLICE`` where the function has raised or given none."""
        answer, chosen = self.ask(pickle.dumps((slices, list(values))), seconds), array("i")
        if len(answer) != len(values) * chosen.itemsize:
            raise self.disturbed()
        chosen.frombytes(answer)
        if not all(NO_SLICE <= slice_ < slices for slice_ in chosen):
            raise self.disturbed()
        return chosen.tolist()


class FunctionSlicing:
    """The function after USING of one feed.

    What can go wrong:

    - the function raises or gives no slice: the record goes where its hash says, and is counted in ``failures``;
    - it takes too long, or its process ends: the values at fault are found in a bounded time, and are treated and
      counted in the same way. Next time it may be in time. So where records of the same primary key must meet in one
      slice, these are refused instead: by its hash a key could come to another slice than before;
    - it is not allowed, or cannot be imported: UnavailableError, and ``problem`` says why, until it can.
    """

    def __init__(self, feed: Feed, dataset: Dataset, settings: FeedsSettings) -> None:
        self.failures, self.problem = 0, ""
        self._feed, self._seconds, self._retry_after = feed, settings.slicing_seconds, settings.retry_after_seconds
        key = dataset.primary_key
        self._binding = key is not None and follows_key(feed.using, feed.slicing, key)
        self._process = SlicingProcess(feed.using, settings.function_bytes)
        # A process ends with the thread that has started it.
        self._asking = ThreadPoolExecutor(1, thread_name_prefix=f"slicing-{feed.name}")
        self._waiting, self._again, self._closed, self._allowed = 0, 0.0, False, True
        try:
            require_allowed(feed.using, settings.functions)
        except InvalidError as error:
            self._allowed = False
            self._note(str(error))
        else:
            self._asking.submit(self._start)

    async def choose(self, values: Sequence[Any]) -> list[int | str]:
        """The slice of each value, or why it has none.

        Raises UnavailableError if the function cannot be had, and BusyError if too many wait for it.
        """
        self.require()
        if self._waiting >= _MOST_WAITING:
            raise BusyError(
                f"feed {self._feed.name}: {self._waiting} publications wait for their slices from {self._feed.using}; "
                "publish again after the time in Retry-After",
                retry_after=self._retry_after,
            )
        try:
            asked = self._asking.submit(self._choose, values)
        except RuntimeError:
            raise UnavailableError(f"feed {self._feed.name} is being closed; publish again in a moment") from None
        self._waiting += 1
        try:
            return await asyncio.wrap_future(asked)
        finally:
            self._waiting -= 1

    def require(self) -> None:
        """Raises UnavailableError while it is known that the function cannot be had."""
        if self.problem and (not self._allowed or time.monotonic() < self._again):
            raise UnavailableError(self.problem)

    def close(self) -> None:
        """Ends the process, after what is at hand."""
        if self._closed:
            return
        self._closed = True
        self._asking.submit(self._process.close)
        self._asking.shutdown(wait=False)

    def _start(self) -> None:
        """So that nobody waits for it later, and what is wrong with it is known at once."""
        try:
            self._process.run([], self._feed.slices, self._seconds)
        except InvalidError as error:
            self._note(str(error))
        except FunctionFaultError:
            # The first publication finds another process.
            self._process.close()

    def _note(self, reason: str) -> None:
        self.problem = f"feed {self._feed.name} cannot tell the slices of its records: {reason}"
        self._again = time.monotonic() + _AGAIN_SECONDS
        log.error(self.problem)

    def _choose(self, values: Sequence[Any]) -> list[int | str]:
        patience, chosen = Patience(self._seconds, self._clock), list[int | str]()
        try:
            for first in range(0, len(values), CUT):
                chosen += self._choose_some(values[first : first + CUT], patience)
        except InvalidError as error:
            self._note(str(error))
            raise UnavailableError(self.problem) from None
        self.problem = ""
        return chosen

    def _clock(self) -> float:
        process = self._process
        return time.monotonic() - process.starting_seconds + process.starts * _START * self._seconds

    def _choose_some(self, values: Sequence[Any], patience: Patience) -> list[int | str]:
        if patience.exhausted or self._closed:
            return [self._settle(value, "it was not asked any more") for value in values]
        chosen, slices = list[int | str](), self._feed.slices
        for part in try_parts(0, len(values), self._run_on(values), patience):
            taken = values[part.first : part.last]
            if part.given is None:
                log.warning("a function has no slice for a record", feed=self._feed.name, reason=part.fault)
                chosen += [self._settle(value, part.fault) for value in taken]
            else:
                chosen += [self._or_hash(value, each, slices) for value, each in zip(taken, part.given, strict=True)]
        return chosen

    def _run_on(self, values: Sequence[Any]) -> Any:
        def run(first: int, last: int, seconds: float) -> list[int]:
            if self._closed:
                raise FunctionFaultError("its feed is being closed")
            return self._process.run(values[first:last], self._feed.slices, seconds)

        return run

    def _or_hash(self, value: Any, chosen: int, slices: int) -> int:
        if chosen != NO_SLICE:
            return chosen
        self.failures += 1
        return slice_without_function(value, slices)

    def _settle(self, value: Any, fault: str) -> int | str:
        self.failures += 1
        if not self._binding:
            return slice_without_function(value, self._feed.slices)
        return f"{self._feed.using} did not tell its slice ({fault}): publish it again, or have the function mended"
