"""The demo of stock alerts: what it shows, and whether it would notice if something went wrong."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from tocsin.apps.stocks.interests import fulfils
from tocsin.apps.stocks.quotes import Quote, make_quotes
from tocsin.content.filter import conjunction
from tocsin.content.predicate import Comparison, Predicate
from tocsin.demo.stocks.check import AlertCheck
from tocsin.demo.stocks.people import describe, draw_alerts
from tocsin.demo.stocks.screen import StockScreen, spread
from tocsin.overlay.client import Note
from tocsin.overlay.load import Metrics
from tocsin.overlay.server.status import OverlayFigures

HIGH = [Predicate("symbol", Comparison.EQUAL, ("YHOO",)), Predicate("high", Comparison.ABOVE, (40.0,))]
FIGURES: Quote = {"class": "STOCK", "symbol": "YHOO", "low": 1.0, "volume": 5000.0, "date": "12-Apr-96"}


def quote(high: float) -> Quote:
    return {**FIGURES, "high": high}


def note(sequence: int, high: float) -> Note:
    return Note("h", sequence, "p", sequence, quote(high))


@pytest.fixture
def check() -> AlertCheck:
    """Of what was published, the second and the third are for ann."""
    check = AlertCheck({"ann": HIGH})
    for high in (39.0, 41.0, 50.0):
        check.publish("p", quote(high))
    return check


def test_who_got_everything_once_and_in_order_is_content(check: AlertCheck) -> None:
    check.tell("ann", note(2, 41.0))
    check.tell("ann", note(3, 50.0))
    verdict = check.judge()
    assert verdict.clean
    assert (verdict.delivered, check.published) == (2, 3)


def test_what_did_not_come_is_lost(check: AlertCheck) -> None:
    check.tell("ann", note(2, 41.0))
    verdict = check.judge()
    assert (verdict.lost, verdict.clean) == (1, False)
    assert verdict.missed == ["ann has not got 1 publications, the first of them number 3 of p"]


def test_what_comes_twice_or_late_is_told(check: AlertCheck) -> None:
    for sequence, high in ((3, 50.0), (2, 41.0), (3, 50.0)):
        check.tell("ann", note(sequence, high))
    verdict = check.judge()
    assert (verdict.lost, verdict.twice, verdict.disordered, verdict.clean) == (0, 1, 1, False)


@pytest.mark.parametrize("told", [note(1, 39.0), note(2, 42.0), note(4, 60.0)], ids=["unwanted", "changed", "made up"])
def test_what_was_not_published_or_not_asked_for_is_strange(check: AlertCheck, told: Note) -> None:
    check.tell("ann", told)
    assert check.judge().strange == 1


def test_what_an_alert_means_is_what_its_filter_matches() -> None:
    quotes = make_quotes(3, 5, 50)
    alerts = draw_alerts(3, 60, quotes)
    every = [each for symbol in quotes.symbols for each in quotes.by_symbol[symbol]]
    for predicates in alerts.values():
        filter = conjunction(predicates)
        assert [fulfils(each, predicates) for each in every] == [filter.matches(each) for each in every]


def edge(name: str, output: float, people: int) -> OverlayFigures:
    return OverlayFigures(name, "edge", "h", "ws://x", "OK", Metrics(0.1, output, 0.001), people, [])


def test_the_edges_are_shown_with_the_part_of_their_bandwidth_in_use() -> None:
    paper = io.StringIO()
    screen = StockScreen(Console(file=paper, width=120, highlight=False), {"a": 5000.0, "b": 9000.0})
    with screen.stage():
        screen.look(5, [edge("a", 0.75, 3), edge("b", 0.25, 1)], 7)
        screen.told("p1", "class = 'STOCK' and high > 40", note(2, 41.0))
        screen.moves(Counter({("a", "b"): 2}))
    lines = paper.getvalue().splitlines()
    assert lines[0] == "── 5 s: O_r up to 0.75, cov 0.50; 7 alerts"
    assert lines[2].split() == ["a", "h", "█" * 24, "0.75", "of", "5", "0.100", "3", "OK"]
    assert lines[4].endswith("p1   high > 40  YHOO 12-Apr-96: high 41, low 1, 5,000 sold")
    assert lines[5] == "── 2 people moved without a gap: 2 from a to b"


def test_nothing_is_perfectly_even_and_so_is_nobody() -> None:
    assert spread([]) == spread([edge("a", 0.0, 0)]) == spread([edge("a", 0.5, 1), edge("b", 0.5, 1)]) == 0.0
    assert describe("class = 'STOCK'") == "all quotes"
