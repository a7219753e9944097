"""Functions of one's own that a definition names, as ``package.module:function``.

They are code that runs where the data are, so an operator says of which modules they may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any, Final

from tocsin.errors import InvalidError

FUNCTION_NAME: Final = re.compile(r"(?=.{3,255}\Z)[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def import_function(text: str) -> Callable[..., Any]:
    """The function of that name, which its module has not from elsewhere. Raises InvalidError where there is none."""
    module, _, name = text.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:
        raise InvalidError(f"the function {text} cannot be imported: {describe_error(error)}") from None
    if not callable(function):
        raise InvalidError(f"{text} is no function")
    if (home := getattr(function, "__module__", module)) != module:
        raise InvalidError(f"the function {text} is one of {home}: name it there")
    return function  # type: ignore[no-any-return]


def require_allowed(text: str, modules: Collection[str], whose: str = "the data cluster") -> None:
    """Refuses a function of a module that is not among these, which are those of ``feeds.functions`` of somebody."""
    module = text.partition(":")[0]
    if module not in modules:
        raise InvalidError(
            f"functions of the module {module} are not allowed here: an operator allows them with "
            f'feeds.functions = ["{module}"] in the settings of {whose}'
        )


def describe_error(error: BaseException) -> str:
    """What an error of somebody's code is, in a line that is not too long."""
    said = " ".join(str(error).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST: Final = 300
