"""What is asked of neighbours is the covering set of what all others want, after any changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.content.strategies import FILTERS, PUBLICATIONS
from tests.examples import examples
from tocsin.content.covering import CoveringSet
from tocsin.content.filter import Filter
from tocsin.content.language import parse
from tocsin.content.values import Value
from tocsin.overlay.interests import OWN, Difference, Interests

LINKS = st.sampled_from([OWN, "a", "b", "c"])
STEPS = st.lists(
    st.tuples(LINKS, st.sampled_from(["want", "drop", "close"]), st.lists(FILTERS, max_size=3)), max_size=12
)


class Plain:
    """The definition, and what neighbours have been told."""

    def __init__(self, interests: Interests) -> None:
        self.interests = interests
        self.wanted: dict[str, set[Filter]] = {OWN: set()}
        self.told: dict[str, set[Filter]] = {}

    def open(self, link: str) -> None:
        self.told[link] = set(self.interests.open(link))
        self.wanted[link] = set()

    def apply(self, changes: dict[str, Difference]) -> None:
        for link, (add, drop) in changes.items():
            assert self.told[link].isdisjoint(add)
            assert self.told[link] >= set(drop)
            self.told[link] = self.told[link] - set(drop) | set(add)

    def needed(self, link: str) -> set[Filter]:
        needed = {filter for other, wanted in self.wanted.items() if other != link for filter in wanted}
        return {one for one in needed if not any(two.covers(one) for two in needed if two != one)}


@settings(max_examples=examples(80), deadline=None)
@given(STEPS, PUBLICATIONS)
def test_neighbours_are_asked_for_the_covering_set_of_the_others(
    steps: list[tuple[str, str, list[Filter]]], publication: dict[str, Value]
) -> None:
    plain = Plain(Interests())
    for link, what, filters in steps:
        if link != OWN and link not in plain.wanted:
            plain.open(link)
        if what == "close" and link != OWN:
            plain.apply(plain.interests.close(link))
            del plain.wanted[link], plain.told[link]
        elif what == "want":
            plain.apply(plain.interests.want(link, filters, []))
            plain.wanted[link] |= set(filters)
        else:
            plain.apply(plain.interests.want(link, [], filters))
            plain.wanted[link] -= set(filters)
        for neighbour, told in plain.told.items():
            assert told == plain.needed(neighbour) == set(plain.interests.asked_filters(neighbour))
    for sender in plain.wanted:
        matching = {link for link, wanted in plain.wanted.items() if any(each.matches(publication) for each in wanted)}
        assert set(plain.interests.route(publication, sender)) == matching - {sender}


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.booleans(), st.tuples(LINKS, st.sampled_from(["want", "drop"]), st.lists(FILTERS)))
    )
)
def test_what_takes_long_is_done_in_slices_and_nothing_that_is_needed_is_missing_meanwhile(
    steps: list[tuple[str, str, list[Filter]] | bool | None],
) -> None:
    plain = Plain(Interests(linger=True, at_once=1))
    for link in ("a", "b", "c"):
        plain.open(link)
    for step in [*steps, *[None, True] * 2]:
        if step is None and not plain.interests.is_busy:
            plain.apply(plain.interests.settle())
        elif step is True:
            while plain.interests.is_busy:
                plain.apply(plain.interests.go_on())
        elif not isinstance(step, tuple):
            plain.apply(plain.interests.go_on())
        else:
            link, what, filters = step
            plain.apply(plain.interests.want(link, *((filters, []) if what == "want" else ([], filters))))
            before = plain.wanted[link]
            plain.wanted[link] = before | set(filters) if what == "want" else before - set(filters)
        for neighbour, told in plain.told.items():
            assert told == set(plain.interests.asked_filters(neighbour))
            assert all(any(asked.covers(each) for asked in told) for each in plain.needed(neighbour))
    while plain.interests.is_busy:
        plain.apply(plain.interests.go_on())
    for _ in range(2):
        plain.apply(plain.interests.settle())
        while plain.interests.is_busy:
            plain.apply(plain.interests.go_on())
    assert plain.interests.is_settled
    assert all(told == plain.needed(neighbour) for neighbour, told in plain.told.items())


def test_who_goes_and_covers_much_goes_when_all_of_that_is_asked_for() -> None:
    interests, everything = Interests(linger=True), parse("high exists")
    interests.open("up")
    filters = [parse(f"high > {number} and low > {-number}") for number in range(1000)]
    interests.want(OWN, [everything, *filters], [])
    assert interests.want(OWN, [], [everything]) == {}
    told: list[Difference] = []
    while interests.is_busy:
        assert everything in interests.asked_filters("up")
        (difference,) = interests.go_on().values()
        told.append(difference)
    assert [each for difference in told for each in difference.add] == filters
    assert max(len(difference.add) for difference in told) < len(filters) / 2
    assert [difference.drop for difference in told] == [[]] * (len(told) - 1) + [[everything]]


def test_who_comes_back_before_it_has_gone_is_still_asked_for() -> None:
    interests, everything = Interests(linger=True), parse("high exists")
    interests.open("up")
    interests.want(OWN, [everything, *(parse(f"high > {number} and low > {-number}") for number in range(1000))], [])
    interests.want(OWN, [], [everything])
    interests.go_on()
    assert interests.want(OWN, [everything], []) == {}
    assert not interests.is_busy
    assert everything in interests.asked_filters("up")


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.one_of(st.none(), st.tuples(LINKS, st.sampled_from(["want", "drop"]), st.lists(FILTERS)))))
def test_what_lingers_is_no_less_than_is_needed_and_just_that_once_it_was_settled_twice(
    steps: list[tuple[str, str, list[Filter]] | None],
) -> None:
    plain = Plain(Interests(linger=True))
    for link in ("a", "b", "c"):
        plain.open(link)
    for step in [*steps, None, None]:
        if step is None:
            plain.apply(plain.interests.settle())
        else:
            link, what, filters = step
            plain.apply(plain.interests.want(link, *((filters, []) if what == "want" else ([], filters))))
            before = plain.wanted[link]
            plain.wanted[link] = before | set(filters) if what == "want" else before - set(filters)
        for neighbour, told in plain.told.items():
            assert told == set(plain.interests.asked_filters(neighbour)) >= plain.needed(neighbour)
            assert told <= {each for link, wanted in plain.wanted.items() if link != neighbour for each in wanted}
    assert plain.interests.is_settled
    assert all(told == plain.needed(neighbour) for neighbour, told in plain.told.items())


def test_who_subscribes_to_everything_for_a_moment_has_nothing_else_asked_for_anew() -> None:
    interests, everything = Interests(linger=True), parse("high exists")
    interests.open("up")
    filters = [parse(f"high > {number} and low > {-number}") for number in range(50)]
    interests.want(OWN, filters, [])
    for _ in range(5):
        assert interests.want(OWN, [everything], []) == {"up": Difference([everything], [])}
        interests.settle()
        assert interests.want(OWN, [], [everything]) == {"up": Difference([], [everything])}
        interests.settle()
    interests.want(OWN, [everything], [])
    assert interests.settle() == {}
    assert interests.settle() == {"up": Difference([], filters)}


def test_what_takes_the_place_of_a_dropped_filter_comes_with_the_drop() -> None:
    interests, wide, narrow = Interests(), parse("high > 3"), parse("high > 5")
    interests.open("up")
    assert interests.want(OWN, [wide, narrow], []) == {"up": Difference([wide], [])}
    assert interests.want(OWN, [], [wide]) == {"up": Difference([narrow], [wide])}


def test_whoever_comes_or_goes_does_not_have_the_whole_covering_set_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    interests = Interests()
    interests.open("up")
    filters = [parse(f"symbol = 'S{number}'") for number in range(50)]
    interests.want(OWN, filters[:-1], [])
    # Else joining N people would take N times N.
    monkeypatch.setattr(CoveringSet, "covering_set", None)
    monkeypatch.setattr(Filter, "covers", None)
    assert interests.want(OWN, filters[-1:], []) == {"up": Difference(filters[-1:], [])}
    assert interests.want(OWN, [], filters[:1]) == {"up": Difference([], filters[:1])}


def test_filters_that_only_a_line_without_gaps_tells_apart_keep_each_other_out_of_nothing() -> None:
    plain = Plain(Interests())
    others = {"victim": "x > 1", "wide": "x exists", "narrow": "x >= 1.0000000000000002", "bystander": "y > 2"}
    plain.open("up")
    for link, where in others.items():
        plain.open(link)
        plain.apply(plain.interests.want(link, [parse(where)], []))
        plain.wanted[link].add(parse(where))
    for link in ("wide", "victim", "bystander", "narrow"):
        plain.apply(plain.interests.close(link))
        del plain.wanted[link], plain.told[link]
        for neighbour, told in plain.told.items():
            assert told == plain.needed(neighbour)
            for other in plain.wanted.keys() - {neighbour}:
                assert all(any(asked.covers(each) for asked in told) for each in plain.wanted[other])


def test_nothing_is_asked_of_who_has_nothing_to_give() -> None:
    interests, wide, narrow = Interests(), parse("high > 3"), parse("high > 5")
    interests.want(OWN, [wide], [])
    assert interests.open("edge", gives=False) == []
    assert interests.open("head") == [wide]
    assert interests.want("head", [parse("high > 1")], []) == {}
    assert interests.want("edge", [narrow, parse("low > 1")], []) == {"head": Difference([parse("low > 1")], [])}
    assert interests.asked_filters("edge") == []
    assert interests.close("edge") == {"head": Difference([], [parse("low > 1")])}


def test_what_comes_and_goes_in_one_change_is_not_told() -> None:
    interests, wide, narrow = Interests(), parse("high > 3"), parse("high > 5")
    interests.open("up")
    interests.want(OWN, [wide, narrow], [])
    assert interests.want(OWN, [], [wide, narrow]) == {"up": Difference([], [wide])}


def test_a_link_that_is_not_there_wants_nothing() -> None:
    interests = Interests()
    assert interests.want("gone", [parse("a = 1")], []) == {}
    assert interests.close("gone") == {}
