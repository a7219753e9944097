"""The settings of the coordinator."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tocsin.settings.section import Port, Section


class Coordinator(Section, frozen=True, kw_only=True):
    """The coordinator: where it listens, what it keeps, and how it places and moves subscribers."""

    host: Annotated[str, Meta(min_length=1, description="The address to listen on; 0.0.0.0 for all of them.")] = (
        "127.0.0.1"
    )
    port: Annotated[Port, Meta(description="The port to listen on; 0 takes any free one.")] = 8700
