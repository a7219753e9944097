from __future__ import annotations

import io
import re
from collections import Counter
from typing import Any

import pytest
from rich.console import Console

from tests.demo.statuses import status
from tocsin.coordinator.answers import Proposal
from tocsin.crowd.messages import CrowdFigures, Gathered, Heard
from tocsin.demo.board import Board, bar, shares
from tocsin.demo.screen import DemoScreen, describe
from tocsin.model.messages import StatementOutcome
from tocsin.model.slices import FeedSlices, SliceFigures

FIRE: dict[str, Any] = {"id": "2", "severity": 5, "message": "Extreme fire in district B2: Flames."}


@pytest.fixture
def paper() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(paper: io.StringIO) -> DemoScreen:
    return DemoScreen(Console(file=paper, width=120, highlight=False), Board({"b0": "centre", "b1": "east"}))


def test_a_notification_is_one_line_with_the_gravest_report(screen: DemoScreen, paper: io.StringIO) -> None:
    with screen.stage():
        screen.heard(Heard("p7", "EmergenciesOfTypeNearMe", {"event": "fire", "user": "p7", "radius": 500.0}, 3, FIRE))
    shown = "p7     3 new  EmergenciesOfTypeNearMe(fire, p7, 500)  Extreme fire in district B2\n"
    assert re.sub(r"^\d\d:\d\d:\d\d  ", "", paper.getvalue()) == shown


def test_what_comes_before_the_play_begins_is_not_shown(screen: DemoScreen, paper: io.StringIO) -> None:
    screen.heard(Heard("p7", "EmergenciesOfType", {"event": "fire"}, 3, FIRE))
    assert paper.getvalue() == ""


def test_markup_in_a_message_is_shown_as_it_is(screen: DemoScreen, paper: io.StringIO) -> None:
    with screen.stage():
        screen.heard(Heard("p7", "EmergenciesOfType", {}, 1, {**FIRE, "message": "[red]hot[/red]"}))
    assert paper.getvalue().endswith("[red]hot[/red]\n")


def test_a_report_is_described_with_its_distance_and_the_nearest_shelter() -> None:
    report = {"id": "1", "message": "Severe fire in district C4: Smoke.", "distance": 120}
    shelters = [{"name": "Mill Street School", "distance": 80}, {"name": "Elm Street Church", "distance": 90}]
    assert describe(report) == "Severe fire in district C4, 120 m away"
    assert describe({**report, "shelters": []}).endswith("away; no shelter near it")
    assert describe({**report, "shelters": shelters[:1]}).endswith("; shelter Mill Street School 80 m from it")
    assert describe({**report, "shelters": shelters}).endswith("Mill Street School 80 m from it and 1 more")


def test_a_report_of_ones_own_is_described_by_its_message_or_its_id() -> None:
    assert describe({"id": "mine", "message": "[bold]My[/bold] report"}) == "[bold]My[/bold] report"
    assert describe({"id": "mine", "message": None}) == "report mine"
    assert len(describe({"id": "mine", "message": "x" * 1000})) == 60


def test_without_a_terminal_the_brokers_are_printed_every_five_seconds(screen: DemoScreen, paper: io.StringIO) -> None:
    with screen.stage():
        for second in range(1, 11):
            screen.look(
                second, status([30_000, 10_000], people=[3, 1]), CrowdFigures(notifications=7), "balancing is on"
            )
    lines = paper.getvalue().splitlines()
    said = "cov 0.50, highest load 30.0 kB/s = 1.50 × the mean; 7 notifications; balancing is on"
    assert [line for line in lines if line.startswith("──")] == [f"── 5 s: {said}", f"── 10 s: {said}"]
    assert lines[2].split() == ["b0", "centre", "█" * 32, "30.0", "3.0", "30.0", "3"]


def test_before_the_first_notification_there_is_nothing_to_draw(screen: DemoScreen, paper: io.StringIO) -> None:
    with screen.stage():
        screen.look(5, status([0.0, 0.0]), CrowdFigures(), "balancing is on")
    assert paper.getvalue() == "── 5 s: nothing delivered yet; 0 notifications; balancing is on\n"


def test_on_a_terminal_the_brokers_stay_in_view() -> None:
    paper = io.StringIO()
    console = Console(file=paper, width=120, height=50, force_terminal=True, highlight=False)
    screen = DemoScreen(console, Board({"b0": "centre", "b1": "east"}))
    with screen.stage():
        screen.look(1, status([30_000, 10_000]), CrowdFigures(), "balancing is on")
        assert "centre" in paper.getvalue()
        screen.heard(Heard("p7", "EmergenciesOfType", {"event": "fire"}, 3, FIRE))
    assert "EmergenciesOfType(fire)" in paper.getvalue()


def test_bars_are_drawn_against_the_highest_load_so_far(screen: DemoScreen, paper: io.StringIO) -> None:
    for second, loads in ((5, [40_000, 40_000]), (10, [20_000, 10_000])):
        screen.look(second, status(loads), CrowdFigures(), "balancing is on")
    bars = [line.count("█") for line in paper.getvalue().splitlines() if line.startswith("b0")]
    assert bars == [32, 16]
    assert (bar(0.0).strip(), bar(1.0), bar(7.0)) == ("", "█" * 32, "█" * 32)


def test_a_plan_is_told_with_its_reason(screen: DemoScreen, paper: io.StringIO) -> None:
    screen.proposal(Proposal("shuffle", "cov is 1.080, above γ = 0.5", 243, ["shuffle moves 243 of 400 subscribers."]))
    said = paper.getvalue()
    assert "The coordinator would now shuffle (243 moves), since cov is 1.080, above γ = 0.5:" in said
    assert "   shuffle moves 243 of 400 subscribers.\n" in said


def test_moves_are_told_together_the_most_first(screen: DemoScreen, paper: io.StringIO) -> None:
    screen.moves(Counter({("b0", "b1"): 3, ("b0", "b2"): 9, ("b1", "b2"): 2, ("b2", "b1"): 1}))
    flows = "9 from b0 to b2, 3 from b0 to b1, 2 from b1 to b2, …"
    assert paper.getvalue() == f"── 15 people moved without a gap: {flows}\n"


def test_a_decision_is_told_with_its_reason(screen: DemoScreen, paper: io.StringIO) -> None:
    screen.decision("migrate: cov is 0.188, above α = 0.15")
    assert paper.getvalue() == "── the coordinator decides to migrate, since cov is 0.188, above α = 0.15\n"


def test_who_is_there_is_told_with_how_much_is_shared(screen: DemoScreen, paper: io.StringIO) -> None:
    screen.gathered(Gathered(400, [number % 597 for number in range(2151)]), 2)
    assert paper.getvalue().startswith("400 people hold 2,151 subscriptions, of which 597 differ: ")


def test_outcomes_are_told_by_kind(screen: DemoScreen, paper: io.StringIO) -> None:
    titles = ("dataset A", "dataset B", "feed a")
    screen.outcomes(
        [*(StatementOutcome(title, "created") for title in titles), StatementOutcome("channel C", "unchanged")]
    )
    assert [line.split("  ")[0] for line in paper.getvalue().splitlines()] == [
        "2 datasets created",
        "1 feed created",
        "1 channel unchanged",
    ]


def test_waiting_says_for_what_and_for_how_long(screen: DemoScreen, paper: io.StringIO) -> None:
    with screen.waiting("Starting Spark"):
        assert paper.getvalue() == "Starting Spark … "
    assert paper.getvalue() == "Starting Spark … 0 s\n"


def test_waiting_in_vain_ends_the_line(screen: DemoScreen, paper: io.StringIO) -> None:
    with pytest.raises(KeyError), screen.waiting("Starting Spark"):
        raise KeyError
    assert paper.getvalue() == "Starting Spark … \n"


def test_who_processes_what_is_published_is_one_line(paper: io.StringIO, screen: DemoScreen) -> None:
    owners = ["data", "node-1", "node-2", "node-1", None]
    slices = [SliceFigures(number, owner, 0, 0, 0, 0) for number, owner in enumerate(owners)]
    screen.shares([shares(FeedSlices("reports", "Reports", True, slices=slices))])
    assert paper.getvalue() == "── slices of reports: 1 at data, 1 at nobody, 2 at node-1, 1 at node-2\n"
