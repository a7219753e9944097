"""What all experiments of the PADRES evaluation are told: the seed, the size, and where quotes come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

from tocsin.apps.stocks.quotes import Quotes, make_quotes, read_quotes
from tocsin.experiment.padres.run import FIRST_INPUT
from tocsin.experiment.padres.scenario import ScenarioSize


@dataclass(frozen=True)
class PadresSettings:
    """Of one run. ``quotes`` is a file of stock quotes; without one they are made."""

    seed: int = 1
    quick: bool = False
    quotes: Path | None = None

    full: ClassVar[ScenarioSize]
    small: ClassVar[ScenarioSize]
    """The experiment's size, and that of a quick run."""

    @property
    def size(self) -> ScenarioSize:
        """How large this run is."""
        return self.small if self.quick else self.full

    @property
    def smaller(self) -> str:
        """What a quick run has less of."""
        if not self.quick:
            return ""
        small, full = self.small, self.full
        return (
            f"{small.subscribers} of {full.subscribers:,} subscribers and {small.seconds:,.0f} of {full.seconds:,.0f} "
            "seconds"
        )

    @cached_property
    def stock_quotes(self) -> Quotes:
        """The quotes that are published."""
        return read_quotes(self.quotes) if self.quotes else make_quotes(self.seed)

    def describe(self) -> Mapping[str, Any]:
        """What the numbers of all these depend on. A file counts by what is in it, wherever it lies."""
        content = blake2b(self.quotes.read_bytes(), digest_size=8).hexdigest() if self.quotes else "made"
        return {
            "seed": self.seed,
            "quick": self.quick,
            "quotes": content,
            "subscribers": self.size.subscribers,
            "publishers": self.size.publishers,
            "seconds": self.size.seconds,
            "input ratio at first": FIRST_INPUT,
        }
