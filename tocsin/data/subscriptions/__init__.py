"""The live BE subscriptions: what executions read, and who is to be told of what they find.

:class:`SubscriptionRegistry` knows them all. :class:`Segments` is how an execution gets at those of a channel without
loading those it already knows.
"""

from __future__ import annotations

from tocsin.data.subscriptions.registry import SubscriptionRegistry
from tocsin.data.subscriptions.segments import Segments

__all__ = ["Segments", "SubscriptionRegistry"]
