"""Dependencies point one way, and what decides needs neither sockets nor a clock (docs/architecture.md).

Read from the sources, as Python would import them: what is there for types alone is left out, and a module brings with
it what the modules bring that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from typing import Final

import pytest

from tests.sources import CORES, below, deciding, is_within, sources

AROUND: Final = frozenset(
    (
        *(
            "asyncio",
            "concurrent",
            "http",
            "multiprocessing",
            "selectors",
            "signal",
            "socket",
            "ssl",
            "subprocess",
            "time",
        ),
        *("confluent_kafka", "deltalake", "httpx", "obstore", "psycopg", "pyarrow", "pyspark", "sqlite3", "starlette"),
        *("uvicorn", "websockets"),
    )
)
"""Sockets, processes, the clock, stores and Spark: what nothing that decides may bring with it."""

ALONE: Final = {
    "tocsin.balance": {"tocsin.errors"},
    "tocsin.content": {"tocsin.errors"},
    "tocsin.errors": set[str](),
    "tocsin.model": {"tocsin.errors"},
    "tocsin.slices": {"tocsin.errors", "tocsin.balance", "tocsin.functions"},
}
"""Who imports nothing else of ours but these."""


@pytest.mark.parametrize("package", CORES)
def test_what_decides_brings_no_socket_no_clock_no_store_and_no_spark_with_it(package: str) -> None:
    modules = deciding(package)
    assert modules
    found = {module: sorted({name.partition(".")[0] for name in brought(module)} & AROUND) for module in modules}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize("package", ALONE)
def test_what_others_rest_on_rests_on_little_of_ours(package: str) -> None:
    ours = {name for module in below(package) for name in imports(module, whole=True) if name.startswith("tocsin")}
    allowed = ("tocsin.errors", package, *ALONE[package])
    assert {name for name in ours if not is_within(name, allowed)} == set()


def test_what_is_shipped_never_imports_tests() -> None:
    found = {name for module in sources() for name in imports(module, whole=True)}
    assert {name for name in found if is_within(name, ("tests", "pytest", "hypothesis"))} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter({module: imports(module) & sources().keys() - {module} for module in sources()}).prepare()


@cache
def imports(module: str, whole: bool = False) -> frozenset[str]:
    """The modules that one imports when it is imported itself, or as a ``whole``: when its functions run, too."""
    found: set[str] = set()
    for node in _statements(sources()[module].body, whole):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.module, f"{module} imports something relative to itself"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in sources() else node.module for name in names}
    return frozenset(found)


def _statements(nodes: Iterable[ast.AST], whole: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _statements(node.orelse, whole)
        elif whole or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _statements(ast.iter_child_nodes(node), whole)


@cache
def brought(module: str) -> frozenset[str]:
    """All that is imported with a module, of ours and of others."""
    found, todo = set[str](), {module}
    while todo:
        new = imports(todo.pop())
        todo |= {name for name in new - found if name in sources()}
        found |= new
    return frozenset(found)
