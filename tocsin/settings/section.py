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
Connections = Annotated[
    int,
    Meta(
        ge=100,
        le=1_000_000,
        description=(
            "Connections for HTTP calls at the same time; with more, the one that has asked for nothing for longest is "
            "ended."
        ),
    ),
]
Origins = Annotated[
    list[str],
    Meta(
        examples=["https://example.org"],
        description=(
            "The web pages that may connect, by their origin; empty for all, or with the demo token for those of this "
            "machine. Other programs always may."
        ),
    ),
]
TlsCertificate = Annotated[
    str,
    Meta(
        examples=["", "/etc/tocsin/certificate.pem"],
        description="The file of its certificate, with all that lead to the root; empty to speak without TLS.",
    ),
]
TlsKey = Annotated[
    str,
    Meta(
        examples=["", "/etc/tocsin/key.pem"],
        description="The file of the certificate's key; empty when it is in the same file.",
    ),
]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the sections. A section's docstring is its description in the documentation."""
