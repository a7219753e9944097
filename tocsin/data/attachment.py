"""What a broker has when it has attached."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.data.subscriptions.rows import Row
from tocsin.schema.definitions import Channel


@dataclass(frozen=True)
class Attachment:
    """BE subscriptions ``bes`` to ``channel`` with the canonical values ``rows``, in the same order.

    ``rates`` are λ of each as far as it is known, for the next ``seconds``.
    """

    channel: Channel
    bes: list[int]
    rows: list[Row]
    rates: list[float | None] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def parameters(self) -> list[dict[str, object]]:
        """The values by their names."""
        names = [column.name for column in self.channel.parameters]
        return [dict(zip(names, row, strict=True)) for row in self.rows]
