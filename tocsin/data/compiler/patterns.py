"""Regular expressions are the author's: matching one takes time without bound, whoever gives the text.

Java tries every way in which a pattern may fit. Some patterns fit a line of fifty letters in more ways than can ever be
tried, and nothing ends that: an execution that is cancelled waits for the row at hand. So with a pattern that is theirs
to choose, one subscriber or publisher could hold Spark's cores for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tocsin.data.compiler import plans
from tocsin.data.compiler.plans import Node

# Spark's expressions that take regular expressions, and the places of these among what they are given.
_PLACES: Final = {
    **dict.fromkeys(("RLike", "RegExpCount", "RegExpExtract", "RegExpExtractAll", "RegExpInStr"), (1,)),
    **dict.fromkeys(("RegExpReplace", "RegExpSubStr", "StringSplit"), (1,)),
    "StringToMap": (1, 2),
}
REFUSAL: Final = (
    "a regular expression must be a constant: one that others choose could keep Spark busy for ever; compare with "
    "contains(), startswith() or endswith()"
)


def with_chosen_pattern(plan: Node) -> Iterator[Node]:
    """What matches a regular expression in an analysed plan that is no constant."""
    for expression in plans.expressions(plan):
        yield from filter(_is_chosen, plans.below(expression))


def _is_chosen(expression: Node) -> bool:
    places = _PLACES.get(plans.kind(expression), ())
    given = plans.children(expression) if places else []
    return not all(given[place].foldable() for place in places)
