"""Daily quotes of many symbols: made from a seed, or read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from tocsin.content.values import Value, check_publication
from tocsin.errors import InvalidError

CLASS: Final = "STOCK"
DAYS: Final = 2500
_FIRST_DAY: Final = date(1996, 4, 12)
_VOLATILITY: Final = 0.025
_COLUMNS: Final = ("symbol", "open", "high", "low", "close", "volume", "date")

Quote = dict[str, Value]
"""A publication: class, symbol, open, high, low, close, volume and date."""


@dataclass(frozen=True)
class Quotes:
    """The quotes of each symbol, in the order of their days."""

    by_symbol: Mapping[str, Sequence[Quote]]

    @property
    def symbols(self) -> list[str]:
        """Those that there are quotes of."""
        return list(self.by_symbol)


def make_quotes(seed: int, symbols: int = 50, days: int = DAYS) -> Quotes:
    """Prices that go up and down by chance, as prices do, and volumes that differ by orders of magnitude."""
    made = {}
    for at in range(symbols):
        symbol = _symbol(at)
        made[symbol] = _history(np.random.default_rng([seed, at]), symbol, days)
    return Quotes(made)


def read_quotes(path: Path) -> Quotes:
    """Quotes of a Parquet file with the columns symbol, open, high, low, close, volume and date."""
    from pyarrow import parquet

    try:
        rows = parquet.read_table(path, columns=list(_COLUMNS)).to_pylist()
    except (OSError, ValueError, KeyError) as error:
        raise InvalidError(f"{path} has no quotes that can be read: {error}") from None
    by_symbol: dict[str, list[Quote]] = {}
    for row in rows:
        quote = check_publication({"class": CLASS, **row})
        by_symbol.setdefault(str(quote["symbol"]), []).append(quote)
    if not by_symbol:
        raise InvalidError(f"{path} has no quotes")
    return Quotes(dict(by_symbol))


def _symbol(at: int) -> str:
    """Three letters, different for each number."""
    letters = [chr(ord("A") + at // 26**place % 26) for place in (0, 1, 2)]
    return "".join(letters)


def _history(random: np.random.Generator, symbol: str, days: int) -> list[Quote]:
    close = random.uniform(5, 80) * np.exp(np.cumsum(random.normal(0, _VOLATILITY, days)))
    opening = close * np.exp(random.normal(0, _VOLATILITY / 2, days))
    high = np.maximum(opening, close) * (1 + np.abs(random.normal(0, _VOLATILITY / 2, days)))
    low = np.minimum(opening, close) * (1 - np.abs(random.normal(0, _VOLATILITY / 4, days)))
    volume = np.round(random.lognormal(np.log(random.uniform(1e5, 1e7)), 0.6, days), -2)
    columns = [np.round(prices, 2).tolist() for prices in (opening, high, low, close)]
    return [
        {
            "class": CLASS,
            "symbol": symbol,
            "open": columns[0][day],
            "high": columns[1][day],
            "low": columns[2][day],
            "close": columns[3][day],
            "volume": float(volume[day]),
            "date": (_FIRST_DAY + timedelta(days=day)).strftime("%d-%b-%y"),
        }
        for day in range(days)
    ]
