"""``is_new(alias)``: which relations of a body read only what is new.

Reading only new records in place of all and dropping the condition must mean the same as filtering by it; where it
would not, as below OR or on the side of a join that may stay without a match, ``is_new`` is refused.
"""

from __future__ import annotations

from tocsin.data.compiler.reading import Reading
from tocsin.data.compiler.scopes import Item, Scope
from tocsin.schema.definitions import Dataset, DatasetKind


def new_relations(reading: Reading) -> dict[int, Dataset]:
    """The datasets that are read only as far as they are new, by the key of their relation."""
    return dict(_relation(reading, call) for call in reading.body.calls("IS_NEW"))


def _relation(reading: Reading, call: int) -> tuple[int, Dataset]:
    body = reading.body
    arguments = body.arguments(call)
    if len(arguments) != 1 or len(arguments[0]) != 1 or not body.is_name(arguments[0].first):
        raise body.error("is_new takes one relation's name or alias, as in is_new(r)", call)
    alias = body.names[arguments[0].first]
    scope = body.scope(call)
    item = scope.item(alias) if scope else None
    if scope is None or item is None:
        raise body.error(f"is_new({alias}): this SELECT reads nothing called {alias}", call)
    dataset = reading.dataset(item)
    if dataset is None:
        raise body.error(f"is_new({alias}): {alias} is not a dataset; name a dataset of the FROM clause", call)
    if dataset.kind is DatasetKind.REFERENCE:
        reason = f"{dataset.name} is a reference dataset, which is loaded and has no new records"
        raise body.error(f"is_new({alias}): {reason}", call)
    if not _means_the_same(reading, scope, item, call):
        reason = "must be a condition of its own, joined by AND in WHERE or in the ON of its relation: "
        raise body.error(f"is_new({alias}) {reason}not below OR or NOT, not on the outer side of a join", call)
    return item.key, dataset


def _means_the_same(reading: Reading, scope: Scope, item: Item, call: int) -> bool:
    """Whether reading only new rows means the same there as filtering by is_new."""
    if scope.joins("RIGHT", "FULL"):
        return False
    for conjunct, joined in reading.body.conditions(scope):
        if conjunct == reading.body.call(call):
            return joined is item or (item.inner and (joined is None or joined.inner))
    return False
