"""How popular subscriptions are, as people write it: uniform, zipf:0.9, communities:50."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from tocsin.errors import InvalidError

ZIPF: Final = 1.0
COMMUNITIES: Final = 50


class Popularity(NamedTuple):
    """The exponent of the Zipf law by which subscriptions are chosen, and how many groups of people want the same."""

    exponent: float = 0.0
    communities: int = 0


def popularity(text: str) -> Popularity:
    """What a text says; InvalidError with the possible ones when it says nothing."""
    law, _, figure = text.partition(":")
    try:
        match law:
            case "uniform" if not figure:
                return Popularity()
            case "zipf" if 0 <= float(figure or ZIPF) < math.inf:
                return Popularity(float(figure or ZIPF))
            case "communities" if int(figure or COMMUNITIES) > 0:
                return Popularity(0.0, int(figure or COMMUNITIES))
    except ValueError:
        pass
    raise InvalidError(
        f"popularity {text!r} is not known; write uniform, zipf or zipf:0.9 (the exponent, from 0 on), communities or "
        "communities:50 (how many)"
    )
