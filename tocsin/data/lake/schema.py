"""Whether a table that is there has the columns that its definition says."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tocsin.errors import StorageError

# Differences that do not matter: views, large variants, the name of a list's items.
_SAME = {"large_": "", "_view": "", "<element: ": "<item: "}


def check_schema(place: str, found: pa.Schema, declared: pa.Schema) -> None:
    """Refuses a table whose columns are others than those declared, and says which."""
    stored, wanted = _plain(found), _plain(declared)
    differing = [name for name in {**wanted, **stored} if stored.get(name) != wanted.get(name)]
    if differing:
        pairs = (f"{n} is {stored.get(n, 'missing')}, declared {wanted.get(n, 'as no column')}" for n in differing)
        raise StorageError(
            f"the table at {place} does not fit its definition ({'; '.join(pairs)}): "
            "restore the one or the other from a backup, or move the table away to begin with none"
        )


def _plain(schema: pa.Schema) -> Mapping[str, str]:
    columns = {field.name: str(field.type) for field in schema}
    for old, new in _SAME.items():
        columns = {name: text.replace(old, new) for name, text in columns.items()}
    return columns
