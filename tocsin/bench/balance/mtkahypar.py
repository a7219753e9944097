"""Mt-KaHyPar as a planner: balancing seen as the partitioning of a hypergraph, by a partitioner known to be good.

Subscribers are nodes that weigh their own load, BE subscriptions are nets that weigh λ. A net that is spread over r
blocks costs (r − 1) λ, so that the incoming load is what is minimised, while the blocks' weights, the outgoing loads,
are kept within a small imbalance.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from tocsin.balance.model.plan import Plan, PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Workload
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.refine.relabel import relabel
from tocsin.errors import InvalidError


def require() -> None:
    """Refuses to go on where there is no Mt-KaHyPar to compare with."""
    if importlib.util.find_spec("mtkahypar") is None:
        raise InvalidError("Mt-KaHyPar is not installed; pip install 'tocsin[peer]' does it, or leave out --peer")


@dataclass(frozen=True)
class MtKaHyPar:
    """Mt-KaHyPar on one thread. It knows neither rules nor budgets nor capacities.

    Args:
        imbalance: a block may weigh so much more than the average.
    """

    imbalance: float = 0.01

    name: ClassVar[str] = "mtkahypar"

    def plan(self, problem: Problem) -> Plan:
        """The blocks of a partition, each on the broker that most of it are on now."""
        workload = problem.workload
        library, threads = _library()
        library.set_seed(problem.seed)
        context = threads.context_from_preset(library.PresetType.DEFAULT)
        context.set_partitioning_parameters(workload.brokers, self.imbalance, library.Objective.KM1)
        context.logging = False
        nets, weights = _nets(workload)
        own = np.maximum(workload.own, 1).tolist()
        graph = threads.create_hypergraph(context, workload.subscribers, len(nets), nets, own, weights)
        blocks = np.array(graph.partition(context).get_partition(), np.int32)
        everywhere = np.ones(workload.brokers, np.bool_)
        named = relabel(blocks, problem.assignment, everywhere, np.ones(workload.brokers))
        return make_plan(problem, self.name, PlanStatus.BALANCED, named, Reason.SHUFFLE)


@cache
def _library() -> tuple[Any, Any]:
    """The library, which is to be initialised once."""
    import mtkahypar

    return mtkahypar, mtkahypar.initialize(1, False)


def _nets(workload: Workload) -> tuple[list[list[int]], list[int]]:
    """The holders of each BE subscription that more than one holds, and its rate."""
    shape = (workload.subscribers, workload.subscriptions)
    held = csr_array((np.ones(len(workload.idx), np.int8), workload.idx, workload.indptr), shape=shape).tocsc()
    shared = np.flatnonzero(np.diff(held.indptr) > 1)
    nets = [held.indices[held.indptr[k] : held.indptr[k + 1]].tolist() for k in shared]
    return nets, workload.rates[shared].tolist()
