"""Matching with the index, compared with matching each filter by itself."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.content.strategies import FILTERS, PUBLICATIONS
from tests.examples import examples
from tocsin.content.engine import Engine
from tocsin.content.filter import Filter
from tocsin.content.language import parse
from tocsin.content.values import Publication, ValueKind
from tocsin.errors import ConflictError, NotFoundError


def check(engine: Engine, filters: dict[int, Filter], publication: Publication) -> None:
    """The engine finds those that match, each of them once."""
    found = engine.match(publication).tolist()
    assert sorted(found) == sorted(number for number, one in filters.items() if one.matches(publication))
    assert engine.matching(publication) == [filters[number] for number in found]
    assert engine.matches_any(publication) == bool(found)


STEPS = st.lists(st.one_of(FILTERS, PUBLICATIONS, st.integers(0, 50)), max_size=60)


@given(STEPS, PUBLICATIONS)
@settings(max_examples=examples(400), deadline=None)
def test_the_index_finds_what_a_scan_finds(steps: list[Filter | Publication | int], last: Publication) -> None:
    engine, filters = Engine(), dict[int, Filter]()
    for number, step in enumerate(steps):
        if isinstance(step, Filter):
            engine.add(number, step)
            filters[number] = step
        elif isinstance(step, int):
            for gone in list(filters)[step : step + 1]:
                engine.remove(gone)
                del filters[gone]
        else:
            check(engine, filters, step)
    assert len(engine) == len(filters)
    check(engine, filters, last)


@given(st.lists(FILTERS, max_size=25), FILTERS)
@settings(max_examples=examples(300), deadline=None)
def test_the_index_finds_who_covers(held: list[Filter], filter: Filter) -> None:
    engine = Engine()
    for number, each in enumerate(held):
        engine.add(number, each)
    assert engine.covering(filter).tolist() == [at for at, each in enumerate(held) if each.covers(filter)]


@pytest.mark.parametrize("but", [0, 7])
def test_what_no_publication_tells_apart_covers_in_one_direction(but: int) -> None:
    engine, after, from_next = Engine(), parse("x > 1"), parse("x >= 1.0000000000000002")
    engine.add(7, from_next)
    assert engine.coverer(after, but) is None
    engine.add(8, after)
    assert engine.coverer(from_next, 7) == 8
    assert engine.covering(after).tolist() == [8]
    assert engine.covering(from_next).tolist() == [7, 8]
    assert engine.covering(parse("x > 1 and x < 1.0000000000000004")).tolist() == [8]
    assert engine.match({"x": 1.0000000000000002}).tolist() == [7, 8]


@pytest.mark.slow
def test_many_filters_come_and_go_between_publications() -> None:
    random, engine, filters = Random(7), Engine(), dict[int, Filter]()
    for number in range(4000):
        symbol, bound = f"S{random.randrange(20)}", random.randrange(100)
        text = random.choice(
            [
                f"symbol = '{symbol}' and high > {bound}",
                f"symbol starts with '{symbol[:2]}' and low < {bound}",
                f"symbol > '{random.random()}' and symbol != '{symbol}'",
                f"high between {bound} and {bound + 10} and low >= {bound - 5}",
            ]
        )
        engine.add(number, parse(text))
        filters[number] = parse(text)
        if number % 3 == 0:
            gone = random.choice(list(filters))
            engine.remove(gone)
            del filters[gone]
        if number % 50 == 0:
            check(engine, filters, {"symbol": symbol, "high": bound + 0.5, "low": bound - 3})


def test_strings_that_crowd_together_are_numbered_anew() -> None:
    engine, filters = Engine(), dict[int, Filter]()
    # Each lies between the last two, so that there is soon no number left between them.
    for number in range(200):
        filters[number] = parse(f"s > '{'a' * number}b'" if number % 2 else f"s <= '{'a' * number}b'")
        engine.add(number, filters[number])
        if number % 5 == 4:
            engine.remove(number - 3)
            del filters[number - 3]
        check(engine, filters, {"s": "a" * (number // 2) + "ab"})


def test_who_subscribes_to_what_nobody_publishes_costs_publications_nothing() -> None:
    engine = Engine()
    for number in range(300):
        engine.add(number, parse(f"class = 'STOCK' and junk{number} > 1"))
    engine.add(1000, parse("class = 'STOCK' and high > 1"))
    assert len(list(engine._within({("class", ValueKind.STRING), ("high", ValueKind.NUMBER)}))) == 1
    assert engine.match({"class": "STOCK", "high": 2.0}).tolist() == [1000]


def test_publications_of_ever_other_attributes_leave_little_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.content.engine._MOST_ROUTES", 10)
    engine = Engine()
    engine.add(1, parse("high > 1"))
    for other in range(50):
        assert engine.match({"high": 2.0, f"junk{other}": True}).tolist() == [1]
        assert engine.match({"high": 2.0, "symbol": f"junk{other}"}).tolist() == [1]
    assert len(engine._routes) <= 10


def memory_of(count: int) -> tuple[int, int]:
    """What so many filters take that have no attribute in common, and what is left of that when they are gone."""
    filters = [parse(" and ".join(f"x{number}.{at} > 'a'" for at in range(32))) for number in range(count)]
    engine = Engine()
    tracemalloc.start()
    for number, filter in enumerate(filters):
        engine.add(number, filter)
    held, _ = tracemalloc.get_traced_memory()
    for number in range(count):
        engine.remove(number)
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, left


def test_filters_take_memory_for_their_own_attributes_only_and_leave_none_behind() -> None:
    (few, left_of_few), (many, left_of_many) = memory_of(300), memory_of(600)
    assert many < 2.5 * few
    # Dictionaries keep the room that they once had.
    assert left_of_few < few / 5
    assert left_of_many < many / 5


def test_tables_are_told_apart_though_there_are_more_attributes_than_bits() -> None:
    engine = Engine()
    for number in range(600):
        engine.add(number, parse(f"junk{number} > 1 and high > {number}"))
    for number in range(600):
        assert engine.match({f"junk{number}": 2.0, "high": 1000.0}).tolist() == [number]
        assert engine.covering(parse(f"junk{number} > 1 and high > {number} and low > 1")).tolist() == [number]


def test_a_number_is_given_once_and_must_be_known() -> None:
    engine = Engine()
    engine.add(1, parse("a = 1"))
    with pytest.raises(ConflictError, match="a = 1"):
        engine.add(1, parse("a = 2"))
    with pytest.raises(NotFoundError):
        engine.remove(2)
    assert engine.match({"a": 1.0}).tolist() == [1]
