"""Tocsin: a Big Active Data publish/subscribe platform on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.client.connecting import connect as connect

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """``connect``, fetched when first used, so that importing the package stays light."""
    if name == "connect":
        from tocsin.client.connecting import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
