"""Instances and plans in files, as named arrays that numpy and others read (.npz).

An instance holds ``indptr`` (whole numbers, n + 1), ``idx`` (the BE subscriptions of each subscriber, row after row),
``lam`` (bytes per second of each BE subscription), ``a0`` (the broker of each subscriber now) and ``m`` (the number of
brokers); it may hold ``capacity`` (m numbers), ``broker_places`` (m × 2) and ``subscriber_places`` (n × 2). A plan
holds ``a``, the new broker of each subscriber, with ``loads_before`` and ``loads_after`` of the brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tocsin.balance.model.plan import Plan
from tocsin.balance.model.workload import Floats, Int32s, Workload, check
from tocsin.errors import InvalidError, NotFoundError, StorageError

_Array = npt.NDArray[Any]
_NEEDED = ("indptr", "idx", "lam", "a0", "m")
_LARGEST = np.iinfo(np.int64).max // 2
_OPTIONAL = ("capacity", "broker_places", "subscriber_places")


def read(path: Path) -> tuple[Workload, Int32s]:
    """The workload in a file, and who is where now. Raises InvalidError that says what to correct in which array."""
    arrays = _arrays(path)
    try:
        return _instance(arrays)
    except InvalidError as error:
        raise InvalidError(f"{path}: {error}") from None


def write(path: Path, workload: Workload, assignment: Int32s) -> None:
    """Writes an instance, over what was there."""
    optional = {
        "capacity": workload.capacity,
        "broker_places": workload.broker_locations,
        "subscriber_places": workload.subscriber_locations,
    }
    arrays: dict[str, npt.ArrayLike] = {
        "indptr": workload.indptr,
        "idx": workload.idx,
        "lam": workload.rates,
        "a0": assignment,
        "m": np.int64(workload.brokers),
    }
    _save(path, arrays | {name: array for name, array in optional.items() if array is not None})


def write_plan(path: Path, plan: Plan) -> None:
    """Writes a plan, over what was there."""
    loads = {"loads_before": plan.before.loads, "loads_after": plan.after.loads}
    _save(path, {"a": plan.assignment.astype(np.int32), **loads})


def _save(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    try:
        # An open file, because numpy would add .npz to the name of one that it opens.
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # its stub takes the names for its own option
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from None


def _arrays(path: Path) -> dict[str, _Array]:
    try:
        # An open file, because numpy leaves one open that it opens and cannot read.
        with path.open("rb") as file:
            return _load_arrays(path, file)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}; 'tocsin balance generate' makes one") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from None


def _load_arrays(path: Path, file: BinaryIO) -> dict[str, _Array]:
    try:
        # Objects could run code when they are read.
        loaded = np.load(file, allow_pickle=False)
    except Exception:
        raise InvalidError(f"{path} is not an .npz file of plain arrays; write it with numpy.savez") from None
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise InvalidError(f"{path} holds a single array; an instance has several, write it with numpy.savez")
    with loaded:
        missing = [name for name in _NEEDED if name not in loaded.files]
        if missing:
            raise InvalidError(f"{path} has no array {missing[0]}; an instance needs {', '.join(_NEEDED)}")
        return {name: _array(path, loaded, name) for name in (*_NEEDED, *_OPTIONAL) if name in loaded.files}


def _array(path: Path, loaded: Mapping[str, _Array], name: str) -> _Array:
    try:
        return loaded[name]
    # Whatever is wrong inside a damaged file, numpy, zlib and zipfile have an error of their own for it.
    except Exception as error:
        raise InvalidError(f"{path}: {name} cannot be read ({_first_line(error)}); write it again") from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _instance(arrays: Mapping[str, _Array]) -> tuple[Workload, Int32s]:
    brokers = int(_whole("m", arrays["m"].reshape(-1), np.int32, 1)[0])
    assignment = _whole("a0", arrays["a0"], np.int32)
    workload = Workload(
        indptr=_whole("indptr", arrays["indptr"], np.int64),
        idx=_whole("idx", arrays["idx"], np.int32),
        rates=_whole("lam", arrays["lam"], np.int64),
        brokers=brokers,
        capacity=_numbers("capacity", arrays, 1),
        broker_locations=_numbers("broker_places", arrays, 2),
        subscriber_locations=_numbers("subscriber_places", arrays, 2),
    )
    _check_named(workload, assignment)
    check(workload, assignment)
    return workload, assignment


def _check_named(workload: Workload, assignment: Int32s) -> None:
    """What is wrong with arrays that have another name in files than in the library, in the file's words."""
    if workload.brokers < 1:
        raise InvalidError(f"m is {workload.brokers}; there must be at least one broker")
    if not len(workload.indptr):
        raise InvalidError("indptr is empty; it must begin with 0")
    if len(assignment) != workload.subscribers:
        raise InvalidError(
            f"a0 has {len(assignment)} entries, but indptr is for {workload.subscribers} subscribers; "
            "give each subscriber its broker"
        )
    for name, array, end in (("a0", assignment, workload.brokers), ("lam", workload.rates, None)):
        wrong = np.flatnonzero((array < 0) | (array >= end)) if end else np.flatnonzero(array < 0)
        if len(wrong):
            allowed = f"the brokers are 0 to {end - 1}" if end else "rates must not be negative"
            raise InvalidError(f"{name}[{wrong[0]}] is {array[wrong[0]]}; {allowed}")
    # Every load is below twice that, and must be exact.
    if int(workload.rates.max(initial=0)) * len(workload.idx) > _LARGEST:
        raise InvalidError("lam is so large that loads would not fit into 64 bits; give rates in a larger unit")


def _whole(name: str, array: _Array, dtype: type[np.int32 | np.int64], size: int | None = None) -> npt.NDArray[Any]:
    """The array with whole numbers of a type, which must hold every one of them."""
    _check_shape(name, array, 1)
    if size is not None and len(array) != size:
        raise InvalidError(f"{name} has {len(array)} entries; it must be a single number")
    if array.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(array) | (array != np.floor(array)))
        if len(wrong):
            raise InvalidError(f"{name}[{wrong[0]}] is {array[wrong[0]]}; it must be a whole number")
    elif array.dtype.kind not in "iu":
        raise InvalidError(f"{name} has entries of type {array.dtype}; they must be whole numbers")
    limits = np.iinfo(dtype)
    if len(array) and not (array.min() >= limits.min and array.max() <= limits.max):
        raise InvalidError(f"{name} has entries that are too large for {limits.dtype}; the largest is {limits.max}")
    return np.ascontiguousarray(array, dtype)


def _numbers(name: str, arrays: Mapping[str, _Array], dimensions: int) -> Floats | None:
    if name not in arrays:
        return None
    array = arrays[name]
    _check_shape(name, array, dimensions)
    if array.dtype.kind not in "fiu":
        raise InvalidError(f"{name} has entries of type {array.dtype}; they must be numbers")
    return np.ascontiguousarray(array, np.float64)


def _check_shape(name: str, array: _Array, dimensions: int) -> None:
    if array.ndim != dimensions:
        raise InvalidError(f"{name} has {array.ndim} dimensions; it must have {dimensions}")
