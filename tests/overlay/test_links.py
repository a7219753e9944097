"""What a broker knows of filters that came over a link."""

from __future__ import annotations

import gc
from weakref import ref

from tocsin.overlay.links import read


def test_a_filter_is_read_once_as_long_as_somebody_wants_it() -> None:
    filter = read("symbol = 'YHOO' and high > 40")
    assert read("symbol = 'YHOO' and high > 40") is filter


def test_what_nobody_wants_any_more_is_not_kept() -> None:
    gone = ref(read("symbol = 'IBM' and high > 40"))
    gc.collect()
    assert gone() is None
