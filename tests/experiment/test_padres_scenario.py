"""The set-ups of the PADRES evaluation: as many of everything as the paper has, at the times it says."""

from collections import Counter
from itertools import pairwise

import pytest

from tocsin.apps.stocks.quotes import make_quotes
from tocsin.errors import InvalidError
from tocsin.experiment.padres.scenario import (
    LOCAL,
    ScenarioSize,
    clusters_scenario,
    edges_scenario,
    global_scenario,
    local_scenario,
)

QUOTES = make_quotes(1, days=300)
SMALL = ScenarioSize(subscribers=200, joining_until=60.0, doubled_at=120.0, seconds=180.0)


def test_local_brokers_have_the_papers_speeds() -> None:
    scenario = local_scenario(1, QUOTES)
    speeds = {
        site.name: (site.machine.megahertz, site.machine.megabytes, site.machine.megabits) for site in scenario.edges
    }
    assert speeds == {
        "B1": (100, 64, 0.6),
        "B2": (200, 128, 1.2),
        "B3": (400, 256, 2.4),
        "B4": (1000, 640, 6.0),
    }
    assert [site.name for site in scenario.heads] == ["B0"]
    assert scenario.published_to == "B0"


def test_as_many_as_in_the_paper_join_b1_within_a_thousand_seconds() -> None:
    scenario = local_scenario(1, QUOTES)
    assert len(scenario.subscribers) == 2000
    assert {each.broker for each in scenario.subscribers} == {"B1"}
    assert sum(each.silent for each in scenario.subscribers) == 500
    assert all(10 <= each.at <= 1010 for each in scenario.subscribers)
    assert all(one.at <= other.at for one, other in pairwise(scenario.subscribers))
    # Uniform: each tenth of the time has about a tenth of them.
    tenths = Counter(int((each.at - 10) // 100) for each in scenario.subscribers)
    assert min(tenths[tenth] for tenth in range(10)) > 150


def test_publishers_publish_at_their_rates_and_half_of_them_twice_as_much_later() -> None:
    scenario = local_scenario(2, QUOTES, SMALL)
    assert len({publisher.symbol for publisher in scenario.publishers}) == 40
    assert sum(publisher.doubled for publisher in scenario.publishers) == 20
    published = list(scenario.publications())
    assert all(one.at <= other.at for one, other in pairwise(published))
    assert published[0].at >= 5.0
    for publisher in scenario.publishers:
        times = [each.at for each in published if each.publisher == publisher.name]
        later = publisher.rate * (2 if publisher.doubled else 1)
        assert 0 < publisher.rate <= 1
        expected = publisher.rate * (120 - 5) + later * (180 - 120)
        assert abs(len(times) - expected) <= 3
        assert all(each.content["symbol"] == publisher.symbol for each in published if each.publisher == publisher.name)


@pytest.mark.slow
def test_the_silent_match_nothing_and_the_others_what_is_published() -> None:
    scenario = local_scenario(3, QUOTES, SMALL)
    published = [each.content for each in scenario.publications()]
    heard = {each.name: any(each.filter.matches(one) for one in published) for each in scenario.subscribers}
    assert not any(heard[each.name] for each in scenario.subscribers if each.silent)
    loud = [heard[each.name] for each in scenario.subscribers if not each.silent]
    assert sum(loud) > 0.8 * len(loud)


def test_everything_follows_from_the_seed() -> None:
    one, same, other = (local_scenario(seed, QUOTES, SMALL) for seed in (4, 4, 5))
    assert (one.subscribers, one.publishers) == (same.subscribers, same.publishers)
    assert list(one.publications()) == list(same.publications())
    assert one.subscribers != other.subscribers


def test_clusters_form_a_chain_of_two_edges_each() -> None:
    scenario = global_scenario(1, QUOTES, SMALL)
    assert {site.name: site.parent for site in scenario.heads} == {"B10": "", "B20": "B10", "B30": "B20", "B40": "B30"}
    assert [site.name for site in scenario.edges if site.head == "B30"] == ["B31", "B32"]
    assert {each.broker for each in scenario.subscribers} == {"B11"}


def test_scaling_set_ups_have_equal_edges() -> None:
    cluster = edges_scenario(1, QUOTES, 5, SMALL)
    chain = clusters_scenario(1, QUOTES, 6, SMALL)
    assert (len(cluster.heads), len(cluster.edges)) == (1, 5)
    assert (len(chain.heads), len(chain.edges)) == (6, 12)
    assert len({site.machine for site in [*cluster.edges, *chain.edges]}) == 1


def test_a_file_with_too_few_symbols_is_refused() -> None:
    with pytest.raises(InvalidError, match="40 publishers need a symbol each"):
        local_scenario(1, make_quotes(1, symbols=10, days=5), LOCAL)
