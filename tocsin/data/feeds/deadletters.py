"""Dead letters that are there before the dataset has their positions, as after a crash: there they stay, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tocsin.data.processing.stage import Letter

COLUMNS = ["slice", "position", "line"]


def count_beyond(letters: pa.Table, floor: Sequence[int]) -> Counter[Letter]:
    """How many of which lines beyond these positions are among these letters."""
    new = letters["position"].to_numpy() > np.array(floor, np.int64)[letters["slice"].to_numpy()]
    return Counter(_keys(letters.filter(pa.array(new))))


def without(letters: pa.Table, buried: Counter[Letter]) -> pa.Table:
    """The letters but for those that are there already, each of which is taken off the count."""
    new = []
    for key in _keys(letters) if buried else ():
        new.append(buried[key] <= 0)
        buried[key] -= 1
    return letters.filter(pa.array(new, pa.bool_())) if buried else letters


def _keys(letters: pa.Table) -> list[Letter]:
    return list(zip(*(letters[name].to_pylist() for name in COLUMNS), strict=True))
