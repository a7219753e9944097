"""``tocsin simulate faults``: random schedules of faults, and whether nothing that was promised breaks in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from tocsin.cli import messages, output
from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from tocsin.simulate.faults.campaign import CampaignResult, Subject
    from tocsin.simulate.faults.schedule import ScheduleOutcome

_SHOWN = 5


def faults(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many schedules to run.")] = 1000,
    first: Annotated[int, typer.Option("--first-seed", min=0, help="The first schedule's seed.")] = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes; else one per processor.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print everything that happens, step by step.")] = False,
    overlay: Annotated[bool, typer.Option("--overlay", help="Break the content-based overlay instead.")] = False,
    slices: Annotated[bool, typer.Option("--slices", help="Break processing nodes that share slices instead.")] = False,
) -> None:
    """Break everything at random, heal it, and check that nothing was lost, twice, out of order or astray.

    A schedule is a small system of three brokers and five subscribers in which processes crash in the middle of what
    they do, connections break, networks part, people come, go and change their minds, and plans overlap. The same seed
    is the same schedule. The exit status is 0 only when every schedule holds. With --overlay it is a content-based
    overlay of up to three clusters, in which subscribers are moved by sessions between brokers meanwhile. With --slices
    it is a head and up to four processing nodes, which process each record of a log once while slices move.
    """
    from tocsin.simulate.faults.campaign import RUNS, CampaignResult, Subject, run_schedules

    if overlay and slices:
        raise InvalidError("give --overlay or --slices, not both")
    subject = Subject.OVERLAY if overlay else Subject.SLICES if slices else Subject.BROKERS
    result = CampaignResult()
    if trace:
        for seed in range(first, first + seeds):
            _take(result, RUNS[subject](seed, lambda line: output.print(Text(line), soft_wrap=True)), subject)
    else:
        with _progress() as progress:
            task = progress.add_task("schedules", total=seeds)
            for each in run_schedules(first, seeds, jobs or os.cpu_count() or 1, subject):
                _take(result, each, subject)
                progress.advance(task)
    output.print(Text(_verdict(result)), soft_wrap=True)
    if result.failed:
        raise typer.Exit(1)


def _progress() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=messages)


def _take(result: CampaignResult, outcome: ScheduleOutcome, subject: Subject) -> None:
    result.add(outcome)
    if not outcome.wrong:
        return
    for sentence in outcome.wrong[:_SHOWN]:
        output.print(Text(f"seed {outcome.seed}: {sentence}"), soft_wrap=True)
    if len(outcome.wrong) > _SHOWN:
        output.print(Text(f"seed {outcome.seed}: … and {len(outcome.wrong) - _SHOWN} more"), soft_wrap=True)
    option = "" if subject == "brokers" else f"--{subject} "
    replay = f"tocsin simulate faults {option}--first-seed {outcome.seed} --seeds 1 --trace"
    output.print(Text(f"replay it with: {replay}"), soft_wrap=True)


def _verdict(result: CampaignResult) -> str:
    figures = (
        f"{result.faults:,} faults, {result.events:,} events, {result.moves:,} moves, {result.notes:,} notes, "
        f"fingerprint {result.fingerprint}"
    )
    if result.failed:
        return f"{len(result.failed):,} of {result.schedules:,} schedules do not hold ({figures})"
    return f"all of {result.schedules:,} schedules hold ({figures})"
