"""What browsers get: the JavaScript client, ES modules that brokers and the coordinator serve.

The sources of the client are modules that import each other. A page gets them as one: that is one thing to load, to
copy and to keep, and no page has the parts of two versions. What not every page wants is a module that it loads.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

CLIENT: Final = "tocsin.js"
CONTENT: Final = "tocsin-content.js"

# What the client is made of, each before those that import it; the client itself has what pages may use.
_PARTS: Final = ("wire.js", "subscription.js", "stream.js", "requests.js", "connector.js", "subscriber.js")
_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=async|class|const|function)", re.MULTILINE)


@cache
def client(module: str = CLIENT) -> bytes:
    """The text of the JavaScript client, or of its module for content-based subscriptions.

    Raises FileNotFoundError when it was not installed.
    """
    text = _read(module)
    return (_join_parts(text) if module == CLIENT else text).encode()


def _join_parts(last: str) -> str:
    introduction, end, rest = _IMPORT.sub("", last).partition("*/\n")
    parts = (_EXPORT.sub("", _IMPORT.sub("", _read(part))) for part in _PARTS)
    return "\n".join((introduction + end, *parts, rest.lstrip("\n")))


def _read(module: str) -> str:
    return files(__name__).joinpath(module).read_text(encoding="utf-8")
