from __future__ import annotations

import io

from rich.console import Console

from tests.demo.statuses import status
from tocsin.crowd.messages import Compared, CrowdFigures, MissedNotes
from tocsin.crowd.shortfall import Strain
from tocsin.demo.summary import balance, delivery, effort


def test_the_loads_are_told_before_and_after() -> None:
    paper = io.StringIO()
    before, after = status([30_000, 10_000], people=[259, 33]), status([20_000, 20_000], people=[160, 132])
    Console(file=paper, width=120).print(balance(before, after))
    lines = [line.split("  ") for line in paper.getvalue().splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[1:] == [
        ["cov of the brokers' loads", "0.50", "0.00"],
        ["highest load", "1.50 × the mean (30.0 kB/s)", "1.00 × the mean (20.0 kB/s)"],
        ["people on the fullest broker", "259", "160"],
    ]


def test_delivery_is_told_with_what_went_wrong() -> None:
    figures = CrowdFigures(
        bytes=2_500_000,
        published={"reports": 334, "locations": 24_000},
        moved=12,
        duplicates=1,
        disordered=2,
        lost_connections=3,
        waits={400: 90, 950: 10},
    )
    compared = Compared(3148, 8, [MissedNotes("p7", 12, list(range(1, 9)))], absent=2)
    said = [sentence.plain for sentence in delivery(60, figures, compared)]
    assert said == [
        "In 60 s: 334 reports and 24,000 locations published, 3,140 notifications delivered (2.5 MB).",
        "Of what the data cluster had found for somebody: 8 lost, 1 delivered twice, 2 out of order; "
        "12 moves between brokers meanwhile.",
        "From the acknowledged report to the person: half within 4.0 s, 95 % within 9.5 s (channels run every 10 to "
        "30 s).",
        "p7 has not got what executions 1, 2, 3, 4, 5, 6, 7, 8 found for subscription 12.",
        "2 people were not connected at the end; nothing above is about them.",
        "Connections lost and made again: 3.",
    ]


def test_a_demo_that_ends_at_once_has_a_summary_too() -> None:
    Console(file=io.StringIO()).print(balance(status([0.0]), status([0.0])))
    assert delivery(0, CrowdFigures(), Compared())[0].plain.startswith("In 0 s: 0 reports and 0 locations")


def test_how_late_the_generator_was_is_told_apart_and_who_is_gone_with_a_process() -> None:
    figures = CrowdFigures(late={0: 90, 4: 10}, lags={0: 99, 31: 1})
    said = [sentence.plain for sentence in effort(figures, 2, 1500, Strain())]
    assert said == [
        "The load generator itself (2 processes): half of what it publishes was sent within 0.00 s of when it was due, "
        "95 % within 0.04 s; its event loops were at most 0.00 s behind for 95 % of the time, and never more than "
        "0.31 s.",
        "1,500 people were lost with the processes that played them; nothing above is about them.",
    ]


def test_a_machine_that_is_too_small_is_told_in_the_end() -> None:
    said = effort(CrowdFigures(late={300: 100}), 1, 0, Strain())
    assert "This machine is too small for what was asked of it." in said[-1].plain
