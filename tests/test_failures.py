"""A test that failed is named as one can run it again."""

from __future__ import annotations

from tests.failures import without_group


def test_a_tests_group_is_no_part_of_its_name() -> None:
    for name in ("tests/test_a.py::test_b", "tests/test_a.py::test_b[x@y]"):
        assert [without_group(name + group) for group in ("", "@spark", "@tests/e2e/", "@tests/test_a.py")] == [
            name
        ] * 4
