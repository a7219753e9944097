"""A test that failed is named as one can run it again, with the way that its failure came."""

from __future__ import annotations

import pytest

from tests.failures import way, without_group

pytest_plugins = ["pytester"]


def test_a_tests_group_is_no_part_of_its_name() -> None:
    for name in ("tests/test_a.py::test_b", "tests/test_a.py::test_b[x@y]"):
        assert [without_group(name + group) for group in ("", "@spark", "@tests/e2e/", "@tests/test_a.py")] == [
            name
        ] * 4


def test_the_way_of_a_failure_through_our_code_is_told(pytester: pytest.Pytester) -> None:
    pytester.mkdir("tests")
    pytester.path.joinpath("tests", "test_it.py").write_text(
        "import json\n\n\ndef read():\n    json.loads('?')\n\n\ndef test_it():\n    read()\n", encoding="utf-8"
    )
    reports = pytester.inline_run("-p", "no:asyncio", "tests").getreports("pytest_runtest_logreport")
    failed = [report for report in reports if report.failed]
    assert [way(report) for report in failed] == ["tests/test_it.py:9 > tests/test_it.py:5"]
