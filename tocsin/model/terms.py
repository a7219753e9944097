"""Who may use a channel or a feed, and which of its values are the user's own name.

The data cluster judges by these, and a broker by what the data cluster told it of them: the same functions, so that
both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from tocsin.errors import ForbiddenError
from tocsin.model.quoting import quote_value

MOST_GROUPS: Final = 64
_NAME: Final = Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*\Z")
SubscriberName = Annotated[str, _NAME, Meta(description="A subscriber's name.")]
GroupName = Annotated[str, _NAME, Meta(description="The name of a group of subscribers.")]
Groups = Annotated[tuple[GroupName, ...], Meta(max_length=MOST_GROUPS, description="The groups in a token.")]


class Asker(msgspec.Struct, frozen=True):
    """Who asks, as the token says."""

    name: SubscriberName
    groups: Groups = ()


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a channel or a feed asks of those who use it.

    Args:
        bound: the parameters or columns that hold the name of whoever uses it, and nothing else.
        groups: a subscriber must be in one of these, so that there is none when there are no groups; None: any may.
    """

    bound: tuple[str, ...] = ()
    groups: Groups | None = None


def admit(terms: Terms, asker: Asker, what: str) -> None:
    """Raises ForbiddenError unless ``asker`` may use ``what``, such as "channel EmergenciesOfType"."""
    if terms.groups is None or not set(terms.groups).isdisjoint(asker.groups):
        return
    if not terms.groups:
        raise ForbiddenError(f"{what} is not open to subscribers; its definition would say FOR SUBSCRIBERS or GROUPS")
    raise ForbiddenError(
        f"{what} is for the groups {', '.join(terms.groups)}, and the token of {asker.name} names none of them: "
        "ask whoever runs this for a token that does"
    )


def fill_in(terms: Terms, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with the bound ones set to ``name``; one that is another's is a ForbiddenError."""
    for bound in terms.bound:
        if (given := values.get(bound)) is not None and given != name:
            raise ForbiddenError(foreign(bound, given, name))
    return {**values, **dict.fromkeys(terms.bound, name)}


def foreign(bound: str, given: object, name: str) -> str:
    """The sentence for a bound value that is not the asker's own."""
    return f"'{bound}' is always the name in the token, {name}, and was given as {quote_value(given)}: leave it out"
