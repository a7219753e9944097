"""The process in which a function runs: batches come, and what the function makes of them goes back.

Whatever the function does to its process, it does to nobody else: it may end it, fill its memory, or never return.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tocsin.data.processing import wire
from tocsin.data.processing.contract import FunctionFaultError, check_given
from tocsin.errors import InvalidError
from tocsin.functions import describe_error, import_function

_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Serves the function that the command line names to whoever started this process, until they are gone."""
    *numbers, name = sys.argv[1:]
    descriptor, parent, memory = map(int, numbers)
    _settle(parent, memory)
    with socket.socket(fileno=descriptor) as connection, suppress(EOFError, OSError):
        try:
            function = import_function(name)
        except InvalidError as error:
            wire.send(connection, wire.Message(wire.REFUSED, 0, str(error).encode()))
            return
        wire.send(connection, wire.Message(wire.READY, 0, b""))
        while True:
            _, number, content = wire.receive(connection, memory)
            kind, answer = _answer(function, content)
            wire.send(connection, wire.Message(kind, number, answer))


def _settle(parent: int, memory: int) -> None:
    """Ends with its parent and by nothing else, and is the first to go when memory is short."""
    # A whole group of processes is told to end at once, and this one must not end before what it works on is given up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _answer(function: Callable[..., Any], content: bytes) -> tuple[bytes, bytes]:
    key, _, packed = content.partition(b"\0")
    try:
        batch = unpack(packed)
        return wire.BATCH, pack(check_given(function(batch), batch, key.decode() or None))
    except FunctionFaultError as fault:
        return wire.REFUSED, str(fault).encode()
    except BaseException as error:
        return wire.REFUSED, f"it raised {describe_error(error)}".encode(errors="replace")


def pack(batch: pa.RecordBatch) -> bytes:
    """A batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(content: bytes) -> pa.RecordBatch:
    """The batch that was made bytes of."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()


if __name__ == "__main__":
    main()
