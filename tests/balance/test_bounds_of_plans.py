"""Every planner lies between the best of all assignments and where it started, and reports bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.enumeration import assignments, highest, ruled, tiny
from tests.examples import examples
from tocsin.balance.model.problem import Problem
from tocsin.balance.policies import PLANNERS, planner


@pytest.mark.parametrize("name", PLANNERS)
@given(seed=st.integers(0, 10_000), capacities=st.booleans())
@hypothesis_settings(max_examples=examples(40))
def test_a_plan_is_between_the_optimum_and_the_start(name: str, seed: int, capacities: bool) -> None:
    workload, now = tiny(seed, capacities=capacities)
    plan = planner(name).plan(Problem(workload, now))
    best = highest(workload, assignments(Problem(workload, now))).min()
    assert plan.lower_bound <= best * (1 + 1e-9)
    assert best <= plan.after.max <= plan.before.max
    assert plan.moves_lower_bound <= len(plan.moves)


@pytest.mark.parametrize("name", PLANNERS)
@given(seed=st.integers(0, 10_000))
@hypothesis_settings(max_examples=examples(40))
def test_with_rules_a_plan_is_one_of_those_allowed_and_its_bounds_hold(name: str, seed: int) -> None:
    problem = ruled(seed)
    plan = planner(name).plan(problem)
    allowed = assignments(problem)
    assert (allowed == plan.assignment).all(axis=1).any()
    assert plan.lower_bound <= highest(problem.workload, allowed).min() * (1 + 1e-9)
    assert plan.moves_lower_bound <= len(plan.moves) == np.count_nonzero(plan.assignment != problem.assignment)
