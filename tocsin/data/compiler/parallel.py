"""Whether a body is data-parallel: what it finds in new records together is what it finds in each alone, put together.

Then new records can be matched wherever they are, in any parts. Looked at in the analysed plan of the body for one
subscription: the new records are read at one place, and nothing between that place and the result needs to see
several of them at once, or an order of them.
"""

from __future__ import annotations

from typing import Final

from tocsin.data.compiler import plans
from tocsin.data.compiler.plans import Node

_ROW_BY_ROW: Final = frozenset({"Project", "Filter", "SubqueryAlias", "Generate", "LateralJoin"})
# The sides of a join on which each row can be looked at by itself.
_LEFT, _RIGHT = 0, 1
_SIDES: Final = {
    "INNER": {_LEFT, _RIGHT},
    "CROSS": {_LEFT, _RIGHT},
    "LEFT OUTER": {_LEFT},
    "LEFT SEMI": {_LEFT},
    "LEFT ANTI": {_LEFT},
    "RIGHT OUTER": {_RIGHT},
}


def is_parallel(plan: Node, fresh: str) -> bool:
    """Whether a body is data-parallel in the relation ``fresh``, the view of what is new in a dataset."""
    return _readings(plan, fresh) == 1 and _is_row_by_row(plan, fresh)


def _is_row_by_row(node: Node, fresh: str) -> bool:
    """Whether the rows of a node, which reads new records at one place, come from these one by one."""
    if _is_view(node):
        return True
    reading = [side for side, child in enumerate(plans.children(node)) if _readings(child, fresh)]
    # Read by a subquery or by a common table expression, which the whole of them may decide.
    if len(reading) != 1 or reading[0] not in _sides(node):
        return False
    return _is_row_by_row(plans.children(node)[reading[0]], fresh)


def _sides(node: Node) -> set[int]:
    """Which of the nodes below may read new records."""
    kind = plans.kind(node)
    if kind == "Join":
        return _SIDES.get(str(node.joinType().sql()), set())
    return set(range(len(plans.children(node)))) if kind in _ROW_BY_ROW else set()


def _readings(plan: Node, view: str) -> int:
    """At how many places a plan reads a view, its subqueries included."""
    found = plans.nodes(plan, inside=lambda node: not _is_view(node))
    return sum(_is_view(node) and str(node.desc().identifier().table()) == view for node in found)


def _is_view(node: Node) -> bool:
    return plans.kind(node) == "View"
