"""A function in a process of its own, so that whoever calls it goes on whatever it does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from typing import ClassVar, Final

import pyarrow as pa

from tocsin.data.processing import wire
from tocsin.data.processing.contract import FunctionFaultError, check_given
from tocsin.data.processing.host import pack, unpack
from tocsin.errors import InvalidError

_START_SECONDS: Final = 120.0
# More than any answer has: what a function may give is bounded before it is sent.
_SPARE_BYTES: Final = 64 << 20
_TIMES: Final = 20


class HostedFunction:
    """A function of one's own in a process that is started when it is needed.

    What can go wrong: the function raises, takes too long, ends its process or has it killed. All of this is a
    :class:`FunctionFaultError`, and the next call finds a process again. Where it cannot be started or the function not
    be imported, that is an :class:`InvalidError`, and nobody's fault who asked.

    Args:
        function: as ``module:function``.
        memory: bytes that the process may have.
    """

    kind: ClassVar[str]
    """What it is asked, of :data:`tocsin.data.processing.host.ANSWERS`."""

    def __init__(self, function: str, memory: int) -> None:
        self._function, self._memory = function, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._calls = 0
        self.starts, self.starting_seconds = 0, 0.0

    def ask(self, content: bytes, seconds: float) -> bytes:
        """What the process answers within so many seconds."""
        connection = self._connection or self.start()
        self._calls += 1
        asked, deadline = wire.Message(wire.ASKED, self._calls, content), time.monotonic() + seconds
        try:
            wire.send(connection, asked, deadline)
            kind, number, answer = wire.receive(connection, _SPARE_BYTES + _TIMES * len(content), deadline)
        except TimeoutError:
            self.close()
            raise FunctionFaultError(f"it took longer than {seconds:g} s") from None
        except (EOFError, OSError):
            raise FunctionFaultError(f"it ended its process ({self._end()})") from None
        if number != asked.number:
            raise self.disturbed()
        if kind == wire.REFUSED:
            raise FunctionFaultError(answer.decode(errors="replace"))
        return answer

    def disturbed(self) -> FunctionFaultError:
        """What came was no answer: nothing that the process says can be relied on."""
        self.close()
        return FunctionFaultError("it has disturbed what its process answers")

    def start(self) -> socket.socket:
        """Starts the process, which has imported the function when this returns. Raises InvalidError if it cannot."""
        begun = time.monotonic()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process, self._connection = self._start(theirs), ours
        try:
            kind, _, content = wire.receive(ours, _SPARE_BYTES, begun + _START_SECONDS)
        except TimeoutError:
            self.close()
            raise self._refusal(f"its module takes longer than {_START_SECONDS:g} s") from None
        except (EOFError, OSError):
            raise self._refusal(f"its module ends the process ({self._end()})") from None
        if kind == wire.REFUSED:
            self.close()
            raise InvalidError(content.decode())
        self.starts += 1
        self.starting_seconds += time.monotonic() - begun
        return ours

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            with suppress(ProcessLookupError):
                # With all that it has started.
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = self._connection = None

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        arguments = [str(theirs.fileno()), str(os.getpid()), str(self._memory), self.kind, self._function]
        return subprocess.Popen(
            [sys.executable, "-m", "tocsin.data.processing.host", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )

    def _end(self) -> str:
        """How a process has ended that has said nothing more."""
        status = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                status = self._process.wait(1)
        self.close()
        if status is None:
            return "or has closed its connection"
        return f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"

    def _refusal(self, reason: str) -> InvalidError:
        return InvalidError(f"the function {self._function} cannot be imported: {reason}")


class FunctionProcess(HostedFunction):
    """Runs one function on batches of records. What it gives and cannot be stored is its fault as well."""

    kind = "batches"

    def run(self, batch: pa.RecordBatch, key: str | None, seconds: float) -> pa.RecordBatch:
        """What the function gives for ``batch``: rows of the same columns, in which ``key`` is not null."""
        answer = self.ask((key or "").encode() + b"\0" + pack(batch), seconds)
        try:
            return check_given(unpack(answer), batch, key)
        except (pa.ArrowException, EOFError, OSError, StopIteration):
            raise self.disturbed() from None


@cache
def function_process(function: str, memory: int) -> FunctionProcess:
    """The process of a function that this process uses for as long as it lives."""
    return FunctionProcess(function, memory)


def check_function(function: str, memory: int) -> None:
    """Refuses a function that cannot be imported, whatever importing it does."""
    process = FunctionProcess(function, memory)
    try:
        process.start()
    finally:
        process.close()
