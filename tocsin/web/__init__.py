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
# The same of what is loaded for an overlay.
_CONTENT_PARTS: Final = ("publisher.js",)
_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=async|class|const|function)", re.MULTILINE)


@cache
def client(module: str = CLIENT) -> bytes:
    """The text of the JavaScript client, or of its module for content-based subscriptions and publications.

    Raises FileNotFoundError when it was not installed.
    """
    return _join_parts(_read(module), _PARTS if module == CLIENT else _CONTENT_PARTS).encode()


def _join_parts(last: str, parts: tuple[str, ...]) -> str:
    introduction, end, rest = last.partition("*/\n")
    # What another module than a part has is still imported.
    imports = [found[0] for found in _IMPORT.finditer(rest) if found[1] not in parts]
    joined = (_EXPORT.sub("", _IMPORT.sub("", _read(part))) for part in parts)
    return "\n".join((introduction + end, *imports, *joined, _IMPORT.sub("", rest).lstrip("\n")))


def _read(module: str) -> str:
    return files(__name__).joinpath(module).read_text(encoding="utf-8")
