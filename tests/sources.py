"""The product's own sources, as tests read them that judge how it is built."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

CORES: Final[dict[str, tuple[str, ...]]] = {
    "tocsin.balance": ("tocsin.balance.warming",),
    "tocsin.broker": ("tocsin.broker.server",),
    "tocsin.client.core": (),
    "tocsin.content": (),
    "tocsin.coordinator": ("tocsin.coordinator.server", "tocsin.coordinator.store"),
    "tocsin.data.control": (),
    "tocsin.model": (),
    "tocsin.overlay": ("tocsin.overlay.server", "tocsin.overlay.client"),
    "tocsin.slices": (),
}
"""What decides, and what of these packages is around it: drives it, keeps what it has decided, compiles it."""


@cache
def sources() -> dict[str, ast.Module]:
    """Every module of ours."""
    found: dict[str, ast.Module] = {}
    for path in sorted(ROOT.glob("tocsin/**/*.py")):
        *package, name = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(package if name == "__init__" else [*package, name])
        found[module] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def below(package: str) -> list[str]:
    """A package with all its modules."""
    return [module for module in sources() if is_within(module, [package])]


def is_within(name: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of these packages, or below one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def deciding(package: str) -> list[str]:
    """The modules of a core: all of its package but what is around it."""
    return [module for module in below(package) if not is_within(module, CORES[package])]
