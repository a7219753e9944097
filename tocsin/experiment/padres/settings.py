"""What all experiments of the PADRES evaluation are told: the seed, the size, and where quotes come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tocsin.apps.stocks.quotes import Quotes, make_quotes, read_quotes
from tocsin.experiment.padres.run import FIRST_INPUT
from tocsin.experiment.padres.scenario import ScenarioSize


@dataclass(frozen=True)
class PadresSettings:
    """Of one run. ``quotes`` is a file of stock quotes; without one they are made."""

    seed: int = 1
    quick: bool = False
    quotes: Path | None = None

    @cached_property
    def stock_quotes(self) -> Quotes:
        """The quotes that are published."""
        return read_quotes(self.quotes) if self.quotes else make_quotes(self.seed)

    def describe(self, size: ScenarioSize) -> Mapping[str, Any]:
        """All that the numbers depend on. A file counts by what is in it, wherever it lies."""
        content = blake2b(self.quotes.read_bytes(), digest_size=8).hexdigest() if self.quotes else "made"
        return {
            "seed": self.seed,
            "quick": self.quick,
            "quotes": content,
            "subscribers": size.subscribers,
            "publishers": size.publishers,
            "seconds": size.seconds,
            "input ratio at first": FIRST_INPUT,
        }
