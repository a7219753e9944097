"""What the names in a channel's body stand for: parameters, datasets, and the relations that columns come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin.data.compiler.scopes import Body, Item, Scope, Span
from tocsin.schema.definitions import Channel, Dataset

_UNKNOWN = "?"


class BodyReading:
    """A channel's body, read against the datasets there are. ``references`` are the tokens that name a parameter."""

    def __init__(self, channel: Channel, datasets: Mapping[str, Dataset]) -> None:
        self.channel = channel
        self.body = Body(channel.body)
        self._datasets = {name.casefold(): dataset for name, dataset in datasets.items()}
        self._parameters = {p.name.casefold(): i for i, p in enumerate(channel.parameters)}
        self.references = [i for i in self.body.whole if self._is_reference(i)]

    def parameter(self, token: int) -> int:
        """Which parameter a reference names."""
        return self._parameters[self.body.names[token].casefold()]

    def refers(self, spans: Iterable[Span]) -> bool:
        """Whether any parameter occurs in ``spans``."""
        return any(token in span for span in spans for token in self.references)

    def own(self, scope: Scope) -> list[int]:
        """The references in this SELECT and in none inside it."""
        return [token for token in self.references if self.body.scope(token) is scope]

    def dataset(self, item: Item) -> Dataset | None:
        """The dataset that a relation is, if it is one."""
        return self._datasets.get(item.name.casefold()) if item.name else None

    def aliases(self, scope: Scope, spans: Iterable[Span]) -> set[str]:
        """What the relations are called that ``spans`` take columns from; "?" is among them for one unknown."""
        body, found = self.body, set()
        for i in (i for span in spans for i in span):
            if not body.is_name(i) or i in self.references or body.word(i - 1) == "." or body.word(i + 1) == "(":
                continue
            if body.words[i] == "AS" or body.word(i - 1) == "AS":  # CAST(value AS type)
                continue
            name = body.names[i]
            item = scope.item(name) if body.word(i + 1) == "." else self._owner(scope, name)
            found.add(item.alias if item and item.alias else _UNKNOWN)
        return found

    def only(self, scope: Scope, spans: list[Span]) -> Item | None:
        """The one relation of this SELECT that all of ``spans`` come from, without any parameter."""
        aliases = self.aliases(scope, spans)
        if len(aliases) != 1 or self.refers(spans):
            return None
        return scope.item(aliases.pop())

    def compared_reference(self, conjunct: Span) -> int | None:
        """The reference in a conjunct ``parameter = expression``, if it is one and the only one there."""
        sides = self.body.split(conjunct, {"="})
        inside = [token for token in self.references if token in conjunct]
        if len(sides) != 2 or len(inside) != 1 or any(self.body.opens_query(i) for i in conjunct):
            return None
        return inside[0] if any(len(side) == 1 and inside[0] in side for side in sides) else None

    def looked_up(self, scope: Scope, item: Item) -> bool:
        """Whether a parameter is compared with the primary key of a relation, so that it gives one row at most."""
        dataset = self.dataset(item)
        if dataset is None or dataset.primary_key is None or not item.movable:
            return False
        key = dataset.primary_key.casefold()
        for conjunct, joined in self.body.conditions(scope):
            if (joined is None or joined.movable) and self.compared_reference(conjunct) is not None:
                named = any(self.body.names[i].casefold() == key for i in conjunct)
                if named and self.aliases(scope, [conjunct]) == {item.alias}:
                    return True
        return False

    def _owner(self, scope: Scope, column: str) -> Item | None:
        """The one dataset of this SELECT with a column of that name; None where something unknown may have one too."""
        datasets = [(item, self.dataset(item)) for item in scope.items]
        if any(dataset is None for _, dataset in datasets):
            return None
        owners = [item for item, dataset in datasets if dataset and dataset.column(column)]
        return owners[0] if len(owners) == 1 else None

    def _is_reference(self, i: int) -> bool:
        body = self.body
        return (
            body.is_name(i)
            and body.names[i].casefold() in self._parameters
            and body.word(i - 1) != "."
            and body.word(i + 1) not in {".", "("}
            and not self._is_type(i)
        )

    def _is_type(self, i: int) -> bool:
        """Whether a type is named there: ``x::date``, ``DATE '2020-02-29'``, ``CAST(x AS date)``."""
        body = self.body
        if body.word(i - 1) == "::" or body.word(i + 1)[:1] in {"'", '"'}:
            return True
        calls = [call for name in ("CAST", "TRY_CAST") for call in body.calls(name)]
        return body.word(i - 1) == "AS" and any(i == body.call(call).last - 2 for call in calls)
