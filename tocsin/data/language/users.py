"""Who may use a channel or a feed, as an application file says it: the words after FOR, and back again."""

from __future__ import annotations

import msgspec

from tocsin.data.language.cursor import WordCursor
from tocsin.model.quoting import quote_value
from tocsin.model.terms import MOST_GROUPS, GroupName, Groups


def users(cursor: WordCursor, *words: str) -> Groups | None:
    """Takes one of ``words`` and what belongs to it: the groups, none of them for PUBLISHERS, None for SUBSCRIBERS."""
    match cursor.choose(*words):
        case "PUBLISHERS":
            return ()
        case "SUBSCRIBERS":
            return None
        case _:
            return _groups(cursor)


def _groups(cursor: WordCursor) -> Groups:
    """``('group', ...)``, in any order and each once, so that the same groups are the same terms."""
    opening = cursor.word
    cursor.expect("(")
    groups, separator = set[str](), ","
    while separator == ",":
        groups.add(_group(cursor))
        separator = cursor.choose(",", ")")
    if len(groups) > MOST_GROUPS:
        raise cursor.error(f"these are {len(groups)} groups; at most {MOST_GROUPS} can be named", opening)
    return tuple(sorted(groups))


def _group(cursor: WordCursor) -> str:
    place = cursor.word
    text = cursor.string("the name of a group")
    try:
        return msgspec.convert(text, GroupName)
    except msgspec.ValidationError:
        rule = "1 to 128 letters, digits and . _ : @ -, first a letter or digit"
        raise cursor.error(f"{quote_value(text)} is not the name of a group: {rule}", place) from None


def render_users(groups: Groups | None, default: Groups | None) -> str:
    """The clause that gives these groups, with a blank before it; nothing where they go without saying."""
    if groups == default:
        return ""
    if groups is None:
        return " FOR SUBSCRIBERS"
    named = ", ".join(f"'{group}'" for group in groups)
    return f" FOR GROUPS ({named})" if groups else " FOR PUBLISHERS"
