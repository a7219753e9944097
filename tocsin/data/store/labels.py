"""The names of brokers and tokens: looser than those of datasets, as host names and addresses make good ones."""

from __future__ import annotations

import re
from typing import Final

from tocsin.errors import InvalidError
from tocsin.model.quoting import quote_value

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


def check_label(name: str) -> str:
    """``name``, if it can be one; refused with the rule when not."""
    if not _LABEL.fullmatch(name):
        raise InvalidError(
            f"{quote_value(name)} is not a name: 1 to 128 of the letters A-Z, digits and . _ : @ -, "
            "beginning with a letter or digit"
        )
    return name
