"""Many connections of one process: opened by scripts, then read as fast as one epoll loop can, and counted.

The measuring process must never be what is measured. So reading is one call into one large buffer per connection that
has something, and nothing is looked at; that what came was right is checked in rounds of their own.
"""

from __future__ import annotations

import resource
import select
import socket
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final

from tocsin.errors import UnavailableError

Script = Generator[bytes, bytearray, None]
"""Opens a connection: yields what to send, is given what has come so far and takes from it what it understood."""
Take = Callable[[memoryview], int]

_BUFFER: Final = 1 << 20
_OPENING: Final = 256  # connections being opened at once: fewer than servers let wait
_PATIENCE: Final = 60.0


class Sockets:
    """Connections to one server.

    What can go wrong: the server closes a connection, or nothing comes for a minute (both are an UnavailableError).
    """

    def __init__(self) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._poll, self._others = select.epoll(), select.epoll()
        self._poll.register(self._others.fileno(), select.EPOLLIN)
        self._takers: dict[int, Take] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._guests: dict[int, socket.socket] = {}
        self._buffer = memoryview(bytearray(_BUFFER))
        self._takers[self._others.fileno()] = self._attend_once

    def __len__(self) -> int:
        return len(self._sockets)

    def listen(self, one: socket.socket, taker: Take) -> None:
        """Calls ``taker``, which gives 0, when something has come for a socket that is not one of these."""
        fd = one.fileno()
        self._guests[fd], self._takers[fd] = one, taker
        self._others.register(fd, select.EPOLLIN)

    def dismiss(self, one: socket.socket) -> None:
        """Closes a connection, or a socket that was listened to, if it is open."""
        fd = one.fileno()
        if fd >= 0:
            (self._others if self._guests.pop(fd, None) else self._poll).unregister(fd)
            self._sockets.pop(fd, None)
            del self._takers[fd]
            one.close()

    def attend(self, seconds: float) -> None:
        """Serves those that are not of these for some time, while what comes to these waits."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._attend_once(self._buffer, left)

    def open(self, address: tuple[str, int], scripts: Iterable[Script]) -> list[socket.socket]:
        """Opens a connection per script and waits until all scripts have ended."""
        before = set(self._sockets)
        waiting = iter(scripts)
        opening: dict[int, Script] = {}
        more = True
        while more or opening:
            while more and len(opening) < _OPENING:
                script = next(waiting, None)
                if script is None:
                    more = False
                else:
                    self._begin(address, script, opening)
            self._turn()
        return [one for fd, one in self._sockets.items() if fd not in before]

    def receive(self, size: int) -> list[int]:
        """Waits until ``size`` bytes have come in all; how many came to each."""
        poll, takers, buffer = self._poll.poll, self._takers, self._buffer
        counts = dict.fromkeys(self._sockets, 0)
        missing, most = size, max(len(takers), 1)
        while missing > 0:
            ready = poll(_PATIENCE, most)
            if not ready:
                raise UnavailableError(f"{missing} bytes of {size} did not come within {_PATIENCE:.0f} seconds")
            for fd, _ in ready:
                if taken := takers[fd](buffer):
                    counts[fd] += taken
                    missing -= taken
        return list(counts.values())

    def collect(self, size: int) -> list[bytes]:
        """Like :meth:`receive`, but keeps what came to each."""
        kept = {fd: bytearray() for fd in self._sockets}
        before = {fd: self._takers[fd] for fd in self._sockets}
        for fd, one in self._sockets.items():
            self._takers[fd] = _keeping(one, kept[fd])
        try:
            self.receive(size)
        finally:
            self._takers.update(before)
        return [bytes(one) for one in kept.values()]

    def settle(self, seconds: float) -> int:
        """Reads until nothing has come for a while; how much it was."""
        total, until = 0, time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for fd, _ in self._poll.poll(left):
                if taken := self._takers[fd](self._buffer):
                    total, until = total + taken, time.monotonic() + seconds
        return total

    def close(self) -> None:
        """Ends all connections, those listened to as well."""
        for one in (*self._sockets.values(), *self._guests.values()):
            one.close()
        self._poll.close()
        self._others.close()

    def _attend_once(self, buffer: memoryview, seconds: float = 0) -> int:
        for fd, _ in self._others.poll(seconds):
            # One that was dismissed in this very turn is not there any more.
            if taker := self._takers.get(fd):
                taker(buffer)
        return 0

    def _begin(self, address: tuple[str, int], script: Script, opening: dict[int, Script]) -> None:
        one = socket.create_connection(address)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd, came = one.fileno(), bytearray()
        self._sockets[fd], opening[fd] = one, script
        if first := next(script):
            one.sendall(first)

        def taker(buffer: memoryview) -> int:
            size = one.recv_into(buffer)
            if not size:
                raise UnavailableError(f"the server closed a connection while it was opened: {bytes(came[-200:])!r}")
            came.extend(buffer[:size])
            try:
                if answer := script.send(came):
                    one.sendall(answer)
            except StopIteration:
                del opening[fd]
                self._takers[fd] = _counting(one)
            return 0

        self._takers[fd] = taker
        self._poll.register(fd, select.EPOLLIN)

    def _turn(self) -> None:
        ready = self._poll.poll(_PATIENCE)
        if not ready:
            raise UnavailableError(f"the server answered nothing for {_PATIENCE:.0f} seconds")
        for fd, _ in ready:
            self._takers[fd](self._buffer)


def converse(address: tuple[str, int], script: Script) -> socket.socket:
    """Opens one connection outside of these."""
    one, came = socket.create_connection(address), bytearray()
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.sendall(next(script))
    while True:
        came += one.recv(_BUFFER)
        try:
            one.sendall(script.send(came))
        except StopIteration:
            return one


def exactly(counts: Sequence[int], each: int) -> None:
    """Refuses a round in which somebody got more or less than its due."""
    wrong = [count for count in counts if count != each]
    if wrong:
        raise UnavailableError(f"{len(wrong)} connections got other than {each} bytes, one of them {wrong[0]}")


def _counting(one: socket.socket) -> Take:
    receive = one.recv_into

    def taker(buffer: memoryview) -> int:
        return receive(buffer) or _fail_closed()

    return taker


def _keeping(one: socket.socket, kept: bytearray) -> Take:
    def taker(buffer: memoryview) -> int:
        size = one.recv_into(buffer) or _fail_closed()
        kept.extend(buffer[:size])
        return size

    return taker


def _fail_closed() -> int:
    raise UnavailableError("the server closed a connection in the middle of the measurement")
