"""The live BE subscriptions: what executions read, and who is to be told of what they find.

:class:`Subscriptions` is the registry. :class:`Segments` is how an execution gets at a channel's subscriptions without
loading those it already knows.
"""

from __future__ import annotations

from tocsin.data.subscriptions.registry import Subscriptions
from tocsin.data.subscriptions.segments import Segments

__all__ = ["Segments", "Subscriptions"]
