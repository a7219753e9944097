"""The subscriber's side: what keeps a program subscribed, and gives it each notification once and in order.

:func:`connect` and :func:`register` are for applications; ``docs/client.md`` shows how. Below them,
:mod:`tocsin.client.core` is the whole of it as a state machine without sockets, clock or threads, and
:class:`~tocsin.client.driver.SubscriberDriver` carries out its actions. ``docs/protocol.md`` is what it speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.client.connecting import connect as connect
    from tocsin.client.coordinator import register as register
    from tocsin.client.coordinator import unregister as unregister


def __getattr__(name: str) -> Any:
    """The application's names, fetched when first used: whoever needs the core alone loads no HTTP client."""
    if name == "connect":
        from tocsin.client.connecting import connect

        return connect
    if name == "register":
        from tocsin.client.coordinator import register

        return register
    if name == "unregister":
        from tocsin.client.coordinator import unregister

        return unregister
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
