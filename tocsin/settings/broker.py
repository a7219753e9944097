"""The settings of a broker."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tocsin.settings.section import Port, Section


class Broker(Section, frozen=True, kw_only=True):
    """A broker: where it listens, whom it serves, and what it allows."""

    name: Annotated[str, Meta(min_length=1, description="The broker's name, which no other broker has.")] = "broker-1"
    host: Annotated[str, Meta(min_length=1, description="The address to listen on; 0.0.0.0 for all of them.")] = (
        "127.0.0.1"
    )
    port: Annotated[Port, Meta(description="The port to listen on; 0 takes any free one.")] = 8701
    coordinator: Annotated[str, Meta(min_length=1, description="The coordinator's URL.")] = "http://127.0.0.1:8700"
    data: Annotated[str, Meta(min_length=1, description="The data cluster's URL.")] = "http://127.0.0.1:8800"
