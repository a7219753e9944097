"""What is delivered in all measurements: rows of an alarm, 300 bytes in JSON."""

from __future__ import annotations

from typing import Final

BYTES: Final = 300


def payload(number: int, execution: int) -> bytes:
    """A JSON array of one row; the numbers are in it, and its size is always the same."""
    head, tail = f'[{{"alarm":{number + 1_000_000},"execution":{execution + 1_000_000_000},"message":"', '"}]'
    return f"{head}{'Smoke on the water. ' * 20:.{BYTES - len(head) - len(tail)}}{tail}".encode()
