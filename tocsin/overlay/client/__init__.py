"""The overlay's client library: subscribe by what publications say at an edge, publish to a head.

:func:`connect` is for applications; ``docs/content.md`` shows how. The cores that it runs are
:mod:`tocsin.overlay.subscriber` and :mod:`tocsin.overlay.publisher`.
"""

from tocsin.overlay.client.connecting import OverlayConnection, connect
from tocsin.overlay.client.subscription import ContentSubscription
from tocsin.overlay.dialogue import Gap, HeadCursor, Note

__all__ = ["ContentSubscription", "Gap", "HeadCursor", "Note", "OverlayConnection", "connect"]
