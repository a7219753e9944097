"""Feeds whose slices processing nodes share: what drives the heads' and the nodes' cores. It decides nothing."""

from typing import Final

LOCAL: Final = "data"
"""The name of the node that the data cluster is itself."""
UNSHARED: Final = "this data cluster processes its slices by itself: set nodes.share = true to share them"
"""What who wants to share them is told."""
