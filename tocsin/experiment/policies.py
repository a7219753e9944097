"""Policies by name for experiments: ours, and one's own as ``package.module:Class``."""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

from tocsin.balance.policies import PLANNERS, planner
from tocsin.errors import InvalidError


def resolve_policy(policy: str) -> str:
    """The name of a policy in :mod:`tocsin.balance.policies`; one's own is entered there under its own ``name``.

    Modules are looked for where Python finds them, and in the working directory.
    """
    if ":" not in policy:
        planner(policy)
        return policy
    name = getattr(_class(policy), "name", None)
    if not isinstance(name, str) or not name:
        raise InvalidError(f'{policy} has no name; give the class an attribute name = "…", as planners have')
    if PLANNERS.setdefault(name, policy) != policy:
        raise InvalidError(f"{policy} calls itself {name!r}, as {PLANNERS[name]} does; choose another name")
    return name


def _class(policy: str) -> type:
    module, _, attribute = policy.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise InvalidError(f"the policy {policy} cannot be imported: {error}; is {module}.py here?") from None
    if not isinstance(found, type) or not is_dataclass(found) or not hasattr(found, "plan"):
        raise InvalidError(
            f"{policy} is no planner: {module} needs a dataclass {attribute} with a method plan(problem)"
        )
    return found
