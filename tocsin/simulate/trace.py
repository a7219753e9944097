"""What happened, as a fingerprint and, if somebody wants to read it, line by line."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct

from tocsin.simulate.clock import START

_MANY = 1 << 10
_pack = Struct("<d").pack


class Trace:
    """Takes every event of every node in. Two runs with the same fingerprint went the same way."""

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._hash, self._pieces = blake2b(digest_size=8), list[bytes]()
        self._show = show
        self._kinds: dict[type, bytes] = {}
        self.events = 0

    def event(self, now: float, node: str, event: object, data: bytes | str = b"") -> None:
        """A node is told something."""
        self.events += 1
        kind = self._kinds.get(type(event)) or self._spell(type(event))
        pieces = self._pieces
        pieces += _pack(now), node.encode(), kind, data if isinstance(data, bytes) else data.encode()
        if len(pieces) > _MANY:
            self._digest()
        if self._show:
            self._show(f"{now - START:10.4f}  {node:<12} {_short(event)}")

    def remark(self, now: float, text: str) -> None:
        """Something happens to the world."""
        self._pieces.append(text.encode())
        if self._show:
            self._show(f"{now - START:10.4f}  *** {text}")

    @property
    def fingerprint(self) -> str:
        """The same for the same history."""
        self._digest()
        return self._hash.hexdigest()

    def _spell(self, kind: type) -> bytes:
        self._kinds[kind] = spelled = b" %b" % kind.__name__.encode()
        return spelled

    def _digest(self) -> None:
        self._hash.update(b"".join(self._pieces))
        self._pieces.clear()


def _short(event: object) -> str:
    text = repr(event)
    return text if len(text) <= 200 else f"{text[:197]}..."
