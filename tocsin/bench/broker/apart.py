"""A contestant in a process of its own: the connections of all of them are more than one process may have."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tocsin.bench.broker.contestant import Cores, FanoutContestant, FanoutRound
from tocsin.errors import TocsinError, UnavailableError

_REST = 0.02
_END_SECONDS = 60


class ContestantProcess:
    """Calls a contestant that ``make`` makes there; what goes wrong there is raised here."""

    def __init__(self, make: Callable[[], FanoutContestant], directory: Path, cores: Cores) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        # Not before it is told to: it inherits which cores it may use.
        self._process = context.Process(target=_serve, args=(there, make), daemon=True)
        self._there, self._directory, self._cores = there, directory, cores

    def __enter__(self) -> Self:
        self._process.start()
        self._there.close()
        try:
            self._call("open", self._directory, self._cores)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def check(self, count: int) -> None:
        """See :meth:`FanoutContestant.check`."""
        self._call("check", count)

    def round(self, count: int) -> FanoutRound:
        """See :meth:`FanoutContestant.round`."""
        found: FanoutRound = self._call("round", count)
        return found

    def reading(self, count: int, wait: float) -> float:
        """See :meth:`FanoutContestant.reading`."""
        found: float = self._call("reading", count, wait)
        return found

    def _end(self) -> None:
        """Lets it end its servers, which would otherwise outlive it."""
        self._here.close()
        self._process.join(_END_SECONDS)

    def _call(self, name: str, *arguments: Any) -> Any:
        self._here.send((name, arguments))
        try:
            answer = self._here.recv()
        except EOFError:
            raise UnavailableError(f"the measuring process ended while it did {name}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(pipe: Connection, make: Callable[[], FanoutContestant]) -> None:
    """Until the other end is closed."""
    contestant = make()
    try:
        while True:
            while not pipe.poll():
                contestant.rest(_REST)
            name, arguments = pipe.recv()
            try:
                pipe.send(getattr(contestant, name)(*arguments))
            except (TocsinError, ValueError, OSError) as error:
                pipe.send(error if isinstance(error, TocsinError) else UnavailableError(str(error)))
    except (EOFError, KeyboardInterrupt):
        return
    finally:
        contestant.close()
