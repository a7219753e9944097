"""Tests that share what is started once run in one process; nothing else would tell if they did not, but the time."""

from __future__ import annotations

import os

import pytest


def test_the_tests_of_a_file_are_a_group(request: pytest.FixtureRequest) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@tests/test_groups.py"), "pytest-xdist has not seen the group"
