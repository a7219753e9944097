"""PRESS by the paper's worked example: tables 1a and 1b, equations 2 and 3."""

from __future__ import annotations

import pytest

from tocsin.content.language import parse
from tocsin.content.traffic import Samples, added_samples
from tocsin.content.values import Publication

CANDIDATES = {
    "class = 'STOCK'": 0b110111,
    "class = 'STOCK' and volume > 15": 0b110100,
    "class = 'STOCK' and volume > 150": 0b100000,
    "class = 'SPORTS'": 0b001000,
}
COVERING_SET = {
    "class = 'STOCK' and volume > 50": 0b110000,
    "class = 'STOCK' and volume < 5": 0b000001,
    "class = 'MOVIES'": 0b000000,
}
ARRIVALS: list[Publication] = [
    {"class": "STOCK", "volume": 0.0},
    {"class": "STOCK", "volume": 10.0},
    {"class": "STOCK", "volume": 20.0},
    {"class": "SPORTS", "type": "racing"},
    {"class": "STOCK", "volume": 100.0},
    {"class": "STOCK", "volume": 500.0},
]


@pytest.fixture
def samples() -> Samples[str]:
    """The six publications of the example, sampled."""
    taken: Samples[str] = Samples(6)
    for publication in ARRIVALS:
        taken.record(text for text in (*CANDIDATES, *COVERING_SET) if parse(text).matches(publication))
    return taken


def test_the_vectors_are_those_of_the_paper(samples: Samples[str]) -> None:
    for text, vector in (CANDIDATES | COVERING_SET).items():
        assert samples.vector(text) == vector
    assert samples.union(COVERING_SET) == 0b110001


def test_rates_are_those_of_the_paper(samples: Samples[str]) -> None:
    stocks, received = samples.vector("class = 'STOCK'"), samples.union(COVERING_SET)
    assert samples.rate(stocks, 3.0) == 2.5
    assert added_samples(stocks, received) == 0b000110
    assert samples.rate(added_samples(stocks, received), 3.0) == 1.0
    assert received | stocks == 0b110111


def test_no_more_is_recorded_than_was_asked_for(samples: Samples[str]) -> None:
    assert samples.complete
    samples.record(["class = 'SPORTS'"])
    assert samples.taken == 6
    assert samples.vector("class = 'SPORTS'") == 0b001000


def test_without_samples_nothing_is_known() -> None:
    assert Samples[str]().rate(0, 3.0) == 0.0
