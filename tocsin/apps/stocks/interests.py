"""Who wants which quotes: the subscription templates of the PADRES evaluation, with their percentages."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from tocsin.apps.stocks.quotes import CLASS, Quote, Quotes
from tocsin.content.filter import Filter, conjunction
from tocsin.content.predicate import Comparison, Predicate

TEMPLATES: Final = (
    (20, ("symbol", "high")),
    (20, ("symbol", "low")),
    (20, ("symbol", "volume")),
    (34, ("symbol",)),
    (5, ("volume",)),
    (1, ()),
)
"""Per cent of all subscriptions, and the attributes that are asked for besides the class."""

_COMPARED: Final = {"high": Comparison.ABOVE, "low": Comparison.BELOW, "volume": Comparison.ABOVE}
_MEANINGS: Final[dict[Comparison, Callable[[Any, Any], bool]]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.ABOVE: operator.gt,
    Comparison.BELOW: operator.lt,
}


def draw_interest(random: Random, quotes: Quotes, silent: bool = False) -> Filter:
    """A subscription of one of the templates, with values of one of the quotes.

    A silent one asks for a symbol of which there are no quotes, so that it matches none.
    """
    return conjunction(draw_predicates(random, quotes, silent))


def draw_predicates(random: Random, quotes: Quotes, silent: bool = False) -> list[Predicate]:
    """As :func:`draw_interest`, the conditions one by one."""
    (attributes,) = random.choices([which for _, which in TEMPLATES], [weight for weight, _ in TEMPLATES])
    symbol = random.choice(quotes.symbols)
    quote = random.choice(quotes.by_symbol[symbol])
    if silent:
        attributes = tuple(dict.fromkeys(["symbol", *attributes]))
        quote = {**quote, "symbol": f"{symbol}-{random.randrange(10**6)}"}
    return [Predicate("class", Comparison.EQUAL, (CLASS,)), *(_condition_on(name, quote) for name in attributes)]


def fulfils(quote: Quote, predicates: Sequence[Predicate]) -> bool:
    """Whether a quote is what somebody wants, by the meaning of each condition alone: what matching is checked by."""
    return all(_MEANINGS[each.operator](quote[each.attribute], each.values[0]) for each in predicates)


def _condition_on(name: str, quote: Quote) -> Predicate:
    return Predicate(name, _COMPARED.get(name, Comparison.EQUAL), (quote[name],))
