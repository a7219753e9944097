from __future__ import annotations

from tocsin.balance.control.controller import Controller
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.planners.ldm import LDM
from tocsin.coordinator.server.policy import thresholds
from tocsin.experiment.schemes import OURS
from tocsin.settings.coordinator import CoordinatorSettings
from tocsin.simulate.policy import Policy
from tocsin.simulate.system import Setup


def test_settings_that_say_nothing_are_the_products() -> None:
    assert thresholds(CoordinatorSettings()) == Thresholds.product()


def test_whoever_is_not_told_otherwise_balances_as_the_product_does() -> None:
    used = (OURS.thresholds, Policy().thresholds, Setup().planners().thresholds, Controller(LDM(), LDM()).thresholds)
    assert set(used) == {Thresholds.product()}


def test_nothing_stands_between_the_papers_thresholds_and_a_plan() -> None:
    paper = Thresholds.paper()
    assert (paper.cool_down, paper.settle, paper.shuffle_gain, paper.max_over_mean) == (0, 0, 0, None)
