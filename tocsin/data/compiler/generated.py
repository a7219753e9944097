"""The names that a rewrite adds to a body. All begin with two underscores, which no name in a body may."""

from __future__ import annotations

OUTER = "__s"
SUBSCRIPTIONS = "__subs"
BE = "__be"


def fresh(dataset: str) -> str:
    """The view of what is new in a dataset."""
    return f"__new_{dataset}"


def parameter(index: int) -> str:
    """The column of the subscriptions that holds a channel's parameter."""
    return f"__p{index}"


def key(index: int) -> str:
    """The column that holds a value to order the result by that is not one of its columns."""
    return f"__o{index}"


def row(number: int) -> str:
    """The relation that holds the subscription's row in a SELECT."""
    return f"__row{number}"


def quote_name(name: str) -> str:
    """A name from a body, for use in generated text."""
    return f"`{name.replace('`', '``')}`"
