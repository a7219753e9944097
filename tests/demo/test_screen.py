from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from tocsin.demo.cast import Part
from tocsin.demo.screen import Screen, described
from tocsin.demo.tally import Found, Tally
from tocsin.model.messages import Outcome

FIRE = Part(("Aino", "Bilal"), "EmergenciesOfType", {"event": "fire"})
NEAR = Part(("Elif",), "EmergenciesNearMe", {"event": "flood", "user": "p1"})


@pytest.fixture
def paper() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(paper: io.StringIO) -> Screen:
    return Screen(Console(file=paper, width=120, highlight=False), [FIRE, NEAR])


def test_a_notification_is_one_line_with_the_gravest_report(screen: Screen, paper: io.StringIO) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "1", "severity": 2, "message": "Moderate fire in district A1: Smoke."},
        {"id": "2", "severity": 5, "message": "Extreme fire in district B2: Flames."},
        {"id": "3", "severity": None, "message": None},
    ]
    screen.notification(FIRE, rows)
    shown = "Aino and Bilal    3 new  EmergenciesOfType(fire)  Extreme fire in district B2\n"
    assert re.sub(r"^\d\d:\d\d:\d\d  ", "", paper.getvalue()) == shown


def test_a_report_is_described_with_its_distance_and_the_nearest_shelter() -> None:
    report = {"id": "1", "message": "Severe fire in district C4: Smoke.", "distance": 120}
    shelters = [{"name": "Mill Street School", "distance": 80}, {"name": "Elm Street Church", "distance": 90}]
    assert described(report) == "Severe fire in district C4, 120 m away"
    assert described({**report, "shelters": []}).endswith("away; no shelter near it")
    assert described({**report, "shelters": shelters[:1]}).endswith("; shelter Mill Street School 80 m from it")
    assert described({**report, "shelters": shelters}).endswith("Mill Street School 80 m from it and 1 more")


def test_a_report_of_ones_own_is_described_by_its_message_or_its_id() -> None:
    assert described({"id": "mine", "message": "[bold]My[/bold] report"}) == "[bold]My[/bold] report"
    assert described({"id": "mine", "message": None}) == "report mine"
    assert len(described({"id": "mine", "message": "x" * 1000})) == 60


def test_markup_in_a_message_is_shown_as_it_is(screen: Screen, paper: io.StringIO) -> None:
    screen.notification(NEAR, [{"id": "1", "severity": 1, "message": "[red]hot[/red]"}])
    assert paper.getvalue().endswith("[red]hot[/red]\n")


def test_outcomes_are_told_by_kind(screen: Screen, paper: io.StringIO) -> None:
    titles = ("dataset A", "dataset B", "feed a")
    screen.outcomes([*(Outcome(title, "created") for title in titles), Outcome("channel C", "unchanged")])
    assert [line.split("  ")[0] for line in paper.getvalue().splitlines()] == [
        "2 datasets created",
        "1 feed created",
        "1 channel unchanged",
    ]


def test_progress_tells_what_waits_and_what_is_wrong(screen: Screen, paper: io.StringIO) -> None:
    tally = Tally()
    tally.published.update(reports=56, locations=4000)
    screen.progress(10, tally)
    tally.waiting_bytes, tally.problems = 1500, ["the disk is full"]
    tally.look([{"name": "C", "period": 10.0, "execution": 0, "seconds": 0.0}])
    tally.look([{"name": "C", "period": 10.0, "execution": 1, "seconds": 0.25}])
    tally.add(1, Found(1, 1, 1))
    screen.progress(20, tally)
    published = "56 reports and 4,000 locations published"
    assert paper.getvalue().splitlines() == [
        f"── 10 s: {published}, all stored; no execution yet; 0 notifications",
        f"── 20 s: {published}, 1.5 kB wait to be stored; 1 execution, the slowest 0.2 s; 1 notification",
        "── trouble: the disk is full",
    ]


def test_the_summary_tells_of_every_channel_and_subscription(screen: Screen, paper: io.StringIO) -> None:
    tally = Tally()
    tally.published.update(reports=56)
    for execution in (0, 1):
        names = ("EmergenciesOfType", "EmergenciesNearMe")
        tally.look([{"name": name, "period": 10.0, "execution": execution, "seconds": 0.5} for name in names])
    tally.add(4, Found(1, 3, 1200))
    tally.rates = {4: 20.0, 5: 0.0}
    screen.summary(60, tally, {4: FIRE, 5: NEAR})
    shown = [line.split() for line in paper.getvalue().splitlines()]
    assert "In 60 s: 56 reports published; all stored." in paper.getvalue()
    assert ["EmergenciesOfType", "1", "0.50", "1", "3", "1.2"] in shown
    assert ["EmergenciesNearMe", "1", "0.50", "0", "0", "0.0"] in shown
    assert ["Aino", "and", "Bilal", "EmergenciesOfType(fire)", "1", "20"] in shown
    assert ["Elif", "EmergenciesNearMe(flood,", "p1)", "0", "0"] in shown


def test_waiting_says_for_what_and_for_how_long(screen: Screen, paper: io.StringIO) -> None:
    with screen.waiting("Starting Spark"):
        assert paper.getvalue() == "Starting Spark … "
    assert paper.getvalue() == "Starting Spark … 0 s\n"


def test_waiting_in_vain_ends_the_line(screen: Screen, paper: io.StringIO) -> None:
    with pytest.raises(KeyError), screen.waiting("Starting Spark"):
        raise KeyError
    assert paper.getvalue() == "Starting Spark … \n"
