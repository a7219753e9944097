"""Passes bytes on between brokers and the coordinator, and counts them."""

from __future__ import annotations

import socket
import threading

from tocsin.bench.broker.sockets import Sockets, Take


class Relay:
    """Listens, in a thread of its own, for whoever wants to reach ``target``; ``bytes`` were passed so far."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._sockets, self._ended = target, Sockets(), False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.bytes = 0
        self._sockets.listen(self._listener, self._accept)
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it."""
        self._ended = True
        self._thread.join()
        self._sockets.close()

    def _run(self) -> None:
        while not self._ended:
            self._sockets.attend(0.1)

    def _accept(self, buffer: memoryview) -> int:  # noqa: ARG002
        near, _ = self._listener.accept()
        far = socket.create_connection(self._target)
        for source, sink in ((near, far), (far, near)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.listen(source, self._passing(source, sink))
        return 0

    def _passing(self, source: socket.socket, sink: socket.socket) -> Take:
        def taker(buffer: memoryview) -> int:
            size = source.recv_into(buffer)
            self.bytes += size
            if size:
                sink.sendall(buffer[:size])
            else:
                self._sockets.dismiss(source)
                self._sockets.dismiss(sink)
            return 0

        return taker
