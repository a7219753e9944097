"""What nodes measure: processes, and what comes for slices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.sharing import gauge
from tocsin.data.sharing.gauge import ProcessGauge, find_share
from tocsin.data.sharing.rates import SliceRates


def test_a_process_is_measured_in_parts_of_the_machine() -> None:
    usage = ProcessGauge(os.getpid()).look()
    assert 0.0 <= usage.cpu <= 1.0
    assert 0.0 <= usage.memory <= 1.0


def test_memory_counts() -> None:
    measured = ProcessGauge()
    measured._looked -= 2 * gauge._SOON_SECONDS
    assert measured.look().memory > 0


def test_who_looks_again_at_once_is_told_the_same() -> None:
    measured = ProcessGauge()
    assert measured.look() is measured.look()


def test_a_process_that_is_gone_uses_nothing() -> None:
    assert gauge._stat(2**22 + 1) == (0.0, 0)


def limited(directory: Path, own: str, **limits: str) -> tuple[Path, Path]:
    """A system's groups and its ``/proc``; limits are ``group__file``, with ``root`` for the outermost group."""
    groups, proc = directory / "cgroup", directory / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(f"4:memory:/elsewhere\n0::{own}\n")
    for name, said in limits.items():
        group, _, file = name.partition("__")
        place = groups if group == "root" else groups / group
        place.mkdir(parents=True, exist_ok=True)
        (place / file.replace("_", ".")).write_text(said + "\n")
    return groups, proc


def test_a_container_is_measured_by_its_limits(tmp_path: Path) -> None:
    groups, proc = limited(tmp_path, "/", root__cpu_max="50000 100000", root__memory_max="1048576")
    assert find_share(groups, proc) == (0.5, 1048576)


def test_the_narrowest_limit_counts(tmp_path: Path) -> None:
    groups, proc = limited(
        tmp_path,
        "/pods/mine",
        pods__memory_max="2097152",
        root__memory_max="9999999999999999",
        root__cpu_max="max 100000",
    )
    (groups / "pods" / "mine").mkdir()
    (groups / "pods" / "mine" / "cpu.max").write_text("10000 100000\n")
    assert find_share(groups, proc) == (0.1, 2097152)


@pytest.mark.parametrize("said", ["", "max 100000", "nonsense", "1 2 3", "0 100000", "-1 100000", "100000 0"])
def test_what_is_no_limit_leaves_the_machine(tmp_path: Path, said: str) -> None:
    groups, proc = limited(tmp_path, "/", root__cpu_max=said, root__memory_max="max")
    machine = (len(os.sched_getaffinity(0)), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    assert find_share(groups, proc) == machine
    assert find_share(tmp_path / "none", tmp_path / "none") == machine


def test_a_rate_is_what_comes_whether_it_is_read_or_not() -> None:
    rates, position, end = SliceRates(), 0, 0
    for second in range(60):
        end += 500
        before = rates.before({3: position})
        grown = {slice_: end - start for slice_, start in before.items()}
        # Read in fits and starts.
        position = end if second % 7 == 0 else position
        loads = rates.note(float(second), {3: position}, grown, {3: end - position})
    assert abs(loads[0].rate - 500) < 5
    assert loads[0].backlog == end - position


def test_the_first_look_tells_no_rate() -> None:
    rates = SliceRates()
    assert rates.note(1.0, {0: 10}, {}, {0: 90}) == []
    assert [load.rate for load in rates.note(2.0, {0: 10}, {0: 290}, {0: 290})] == [200]


def test_a_slice_that_comes_back_begins_anew() -> None:
    rates = SliceRates()
    rates.note(1.0, {0: 0}, {}, {0: 0})
    rates.note(2.0, {}, {}, {})
    assert rates.before({0: 5}) == {}
    assert rates.note(3.0, {0: 5}, {}, {0: 7}) == []


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=20))
def test_no_rate_is_below_nothing(looks: list[tuple[int, int]]) -> None:
    rates = SliceRates()
    for second, (grown, ahead) in enumerate(looks):
        loads = rates.note(float(second), {0: 0}, {0: grown}, {0: ahead})
        assert all(load.rate >= 0 for load in loads)
