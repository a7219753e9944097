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
from typing import Final

import pyarrow as pa

from tocsin.data.processing import wire
from tocsin.data.processing.contract import FunctionFaultError, check_given
from tocsin.data.processing.host import pack, unpack
from tocsin.errors import InvalidError

_START_SECONDS: Final = 120.0
# More than any answer has: what a function may give is bounded before it is sent.
_SPARE_BYTES: Final = 64 << 20
_TIMES: Final = 20


class FunctionProcess:
    """Runs one function, in a process that is started when it is needed.

    What can go wrong: the function raises, gives what cannot be stored, takes too long, ends its process or has it
    killed. All of this is a :class:`FunctionFaultError`, and the next call finds a process again. Where it cannot be
    started or the function not be imported, that is an :class:`InvalidError`, and no record's fault.

    Args:
        function: as ``module:function``.
        memory: bytes that the process may have.
    """

    def __init__(self, function: str, memory: int) -> None:
        self._function, self._memory = function, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._calls = 0

    def run(self, batch: pa.RecordBatch, key: str | None, seconds: float) -> pa.RecordBatch:
        """What the function gives for ``batch``: rows of the same columns, in which ``key`` is not null."""
        connection = self._connection or self.start()
        self._calls += 1
        asked = wire.Message(wire.BATCH, self._calls, (key or "").encode() + b"\0" + pack(batch))
        deadline = time.monotonic() + seconds
        try:
            wire.send(connection, asked, deadline)
            kind, number, content = wire.receive(connection, _SPARE_BYTES + _TIMES * len(asked.content), deadline)
        except TimeoutError:
            self.close()
            raise FunctionFaultError(f"it took longer than {seconds:g} s") from None
        except (EOFError, OSError):
            raise FunctionFaultError(f"it ended its process ({self._end()})") from None
        if kind == wire.REFUSED and number == asked.number:
            raise FunctionFaultError(content.decode(errors="replace"))
        try:
            if number != asked.number:
                raise pa.ArrowInvalid("an answer to something else")
            return check_given(unpack(content), batch, key)
        except (pa.ArrowException, EOFError, OSError, StopIteration):
            self.close()
            raise FunctionFaultError("it has disturbed what its process answers") from None

    def start(self) -> socket.socket:
        """Starts the process, which has imported the function when this returns. Raises InvalidError if it cannot."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process, self._connection = self._start(theirs), ours
        try:
            kind, _, content = wire.receive(ours, _SPARE_BYTES, time.monotonic() + _START_SECONDS)
        except TimeoutError:
            self.close()
            raise self._refusal(f"its module takes longer than {_START_SECONDS:g} s") from None
        except (EOFError, OSError):
            raise self._refusal(f"its module ends the process ({self._end()})") from None
        if kind == wire.REFUSED:
            self.close()
            raise InvalidError(content.decode())
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
        arguments = [str(theirs.fileno()), str(os.getpid()), str(self._memory), self._function]
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
