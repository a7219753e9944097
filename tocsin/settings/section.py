"""What sections are made of: their base, and the kinds of values that several keys have."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

Size = Annotated[int, Meta(ge=KIB)]
# The upper bound is there to refuse infinity.
Seconds = Annotated[float, Meta(gt=0, le=1_000_000_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the sections. A section's docstring is its description in the documentation."""
