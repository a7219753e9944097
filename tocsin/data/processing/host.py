"""The process in which a function runs: what it is asked comes, and what the function makes of it goes back.

Whatever the function does to its process, it does to nobody else: it may end it, fill its memory, or never return.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import signal
import socket
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tocsin.data.processing import wire
from tocsin.data.processing.contract import FunctionFaultError, check_given
from tocsin.errors import InvalidError
from tocsin.functions import describe_error, import_function
from tocsin.slices.assignment import choose_slice

NO_SLICE: Final = -1
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Serves the function that the command line names to whoever started this process, until they are gone."""
    *numbers, kind, name = sys.argv[1:]
    answer = ANSWERS[kind]
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
            wire.send(connection, wire.Message(*_try(answer, function, content, number)))


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


def _try(
    answer: Callable[[Callable[..., Any], bytes], bytes], function: Callable[..., Any], content: bytes, number: int
) -> tuple[bytes, int, bytes]:
    try:
        return wire.GIVEN, number, answer(function, content)
    except FunctionFaultError as fault:
        return wire.REFUSED, number, str(fault).encode()
    except BaseException as error:
        return wire.REFUSED, number, f"it raised {describe_error(error)}".encode(errors="replace")


def _process(function: Callable[..., Any], content: bytes) -> bytes:
    """Records in a batch, whose key comes first, and those that the function makes of them."""
    key, _, packed = content.partition(b"\0")
    batch = unpack(packed)
    return pack(check_given(function(batch), batch, key.decode() or None))


def _assign(function: Callable[..., Any], content: bytes) -> bytes:
    """Values, after the number of slices, and the slice of each; :data:`NO_SLICE` where the function has none."""
    slices, values = pickle.loads(content)  # of the process that this one belongs to
    chosen = (choose_slice(function, value, slices) for value in values)
    return array("i", (NO_SLICE if slice_ is None else slice_ for slice_ in chosen)).tobytes()


ANSWERS: Final[dict[str, Callable[[Callable[..., Any], bytes], bytes]]] = {"batches": _process, "slices": _assign}


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
