"""A town for the people to live in, without a data cluster."""

from __future__ import annotations

from tests.client.conftest import town

__all__ = ["town"]
