"""Instances and plans in files: what is written is read again, and what is wrong is said in a sentence."""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.balance.enumeration import tiny
from tocsin.balance.instances.file import read, write, write_plan
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Workload
from tocsin.balance.planners.conclusion import make_plan
from tocsin.errors import InvalidError, NotFoundError, StorageError


def _good() -> dict[str, Any]:
    """Two subscribers, two BE subscriptions, two brokers."""
    return {"indptr": [0, 1, 3], "idx": [0, 0, 1], "lam": [10, 20], "a0": [0, 1], "m": 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "instance.npz"


def _same(one: Workload, other: Workload) -> bool:
    names = ("indptr", "idx", "rates", "capacity", "broker_locations", "subscriber_locations")
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return one.brokers == other.brokers and all(
        a is b is None or (a.dtype == b.dtype and np.array_equal(a, b)) for a, b in pairs
    )


@given(seed=st.integers(0, 10_000), capacities=st.booleans(), places=st.booleans())
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, seed: int, capacities: bool, places: bool
) -> None:
    path = tmp_path_factory.mktemp("file") / "instance"
    bare, assignment = tiny(seed, capacities=capacities)
    rng = np.random.default_rng(seed)
    everywhere = {
        "broker_locations": rng.random((bare.brokers, 2)),
        "subscriber_locations": rng.random((bare.subscribers, 2)),
    }
    workload = Workload(bare.indptr, bare.idx, bare.rates, bare.brokers, bare.capacity, **everywhere if places else {})
    write(path, workload, assignment)
    again, where = read(path)
    assert _same(workload, again)
    assert where.dtype == np.int32
    assert np.array_equal(where, assignment)


def test_whole_numbers_may_be_of_any_type_that_holds_them(path: Path) -> None:
    types = {"indptr": np.uint8, "idx": np.float64, "lam": np.float32, "a0": np.int64, "m": np.float64}
    arrays: dict[str, Any] = {name: np.array(_good()[name], of) for name, of in types.items()}
    np.savez(path, **arrays, capacity=[1, 2])
    workload, assignment = read(path)
    assert [str(array.dtype) for array in (workload.indptr, workload.idx, workload.rates)] == [
        "int64",
        "int32",
        "int64",
    ]
    assert assignment.tolist() == [0, 1]
    assert workload.capacity is not None
    assert workload.capacity.tolist() == [1.0, 2.0]


def test_m_may_be_an_array_with_one_entry_and_more_arrays_are_ignored(path: Path) -> None:
    np.savez(path, **_good() | {"m": [2], "comment": "made by hand"})
    assert read(path)[0].brokers == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"indptr": [0, 1, 4]}, "indptr must begin with 0, never fall and end with the length of idx, 3"),
        ({"indptr": [1, 1, 3]}, "indptr must begin with 0"),
        ({"indptr": [0, 2, 1, 3], "a0": [0, 0, 0]}, "never fall"),
        ({"indptr": []}, "indptr is empty; it must begin with 0"),
        ({"indptr": [[0, 1, 3]]}, "indptr has 2 dimensions; it must have 1"),
        ({"idx": [0, 0, 2]}, "idx names BE subscription 2, but there are rates for 0 to 1"),
        ({"idx": [0, 0, -1]}, "idx names BE subscription -1"),
        ({"idx": [0, 1, 1]}, "subscriber 1 holds a BE subscription twice"),
        ({"idx": [0, 0, 2**40]}, "idx has entries that are too large for int32"),
        ({"idx": [0, 0, 0.5]}, r"idx\[2\] is 0.5; it must be a whole number"),
        ({"lam": [10, -1]}, r"lam\[1\] is -1; rates must not be negative"),
        ({"lam": [10, np.nan]}, r"lam\[1\] is nan; it must be a whole number"),
        ({"lam": [10, np.inf]}, r"lam\[1\] is inf; it must be a whole number"),
        ({"lam": ["10", "20"]}, "lam has entries of type <U2; they must be whole numbers"),
        ({"lam": [10, 2**62]}, "lam is so large"),
        ({"lam": np.array([10, 2**63], np.uint64)}, "lam has entries that are too large for int64"),
        ({"a0": [0]}, "a0 has 1 entries, but indptr is for 2 subscribers; give each subscriber its broker"),
        ({"a0": [0, 2]}, r"a0\[1\] is 2; the brokers are 0 to 1"),
        ({"a0": [-1, 0]}, r"a0\[0\] is -1; the brokers are 0 to 1"),
        ({"m": 0}, "m is 0; there must be at least one broker"),
        ({"m": -3}, "m is -3"),
        ({"m": [2, 2]}, "m has 2 entries; it must be a single number"),
        ({"m": []}, "m has 0 entries"),
        ({"m": True}, "m has entries of type bool"),
        ({"capacity": [1.0]}, r"capacity has the shape \(1,\), but there are 2 brokers"),
        ({"capacity": [1.0, 0.0]}, "the capacity of broker 1 is 0.0; it must be a number above 0"),
        ({"capacity": [np.nan, 1.0]}, "the capacity of broker 0 is nan"),
        ({"capacity": ["a", "b"]}, "capacity has entries of type <U1; they must be numbers"),
        ({"broker_places": [[0.0, 1.0]]}, "the locations of the 2 brokers must be x and y for each"),
        ({"subscriber_places": [[0.0, np.nan]] * 2}, "the locations of the 2 subscribers must be x and y"),
        ({"subscriber_places": [0.0, 1.0]}, "subscriber_places has 1 dimensions; it must have 2"),
    ],
)
def test_an_array_that_is_wrong_is_named_with_what_is_wrong(path: Path, wrong: dict[str, Any], message: str) -> None:
    np.savez(path, **_good() | wrong)
    with pytest.raises(InvalidError, match=message) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize("name", ["indptr", "idx", "lam", "a0", "m"])
def test_an_array_that_is_missing_is_named(path: Path, name: str) -> None:
    np.savez(path, **{other: array for other, array in _good().items() if other != name})
    with pytest.raises(InvalidError, match=f"{path} has no array {name}; an instance needs indptr, idx, lam, a0, m"):
        read(path)


class _Trap:
    """Something that runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit",)


def test_objects_are_never_unpickled(path: Path) -> None:
    np.savez(path, **_good() | {"lam": np.array([_Trap(), 1], object)})
    with pytest.raises(InvalidError, match="lam cannot be read"):
        read(path)
    path.write_bytes(pickle.dumps(_Trap()))
    with pytest.raises(InvalidError, match=r"not an \.npz file"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"indptr,idx\n", b"PK\x03\x04 and then nothing", b"\x93NUMPY\x01"])
def test_what_is_no_npz_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InvalidError, match=f"{path} is not an .npz file"):
        read(path)


def test_a_single_array_is_refused(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(InvalidError, match="holds a single array"):
        read(path)


def test_a_damaged_file_is_refused_wherever_the_damage_is(path: Path) -> None:
    workload, assignment = tiny(3)
    write(path, workload, assignment)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(InvalidError, match=str(path)):
            read(path)
    for at in range(0, len(whole), 41):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with suppress(InvalidError):
            read(path)


def test_a_file_that_is_not_there_is_not_found(path: Path) -> None:
    with pytest.raises(NotFoundError, match="tocsin balance generate"):
        read(path)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        write(tmp_path / "no" / "such.npz", *tiny(1))


def test_a_plan_holds_the_new_brokers_and_the_loads(path: Path) -> None:
    workload, assignment = tiny(5)
    problem = Problem(workload, assignment)
    to = ((assignment + 1) % workload.brokers).astype(np.int32)
    write_plan(path, make_plan(problem, "by hand", PlanStatus.BALANCED, to, Reason.SHUFFLE))
    with np.load(path) as plan:
        assert plan["a"].dtype == np.int32
        assert plan["a"].tolist() == to.tolist()
        assert plan["loads_after"].tolist() == Loads(workload, to).utilisation.tolist()
