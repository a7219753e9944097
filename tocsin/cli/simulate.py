"""``tocsin simulate``: the cores on a virtual clock."""

from __future__ import annotations

import atexit
import gc
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from tocsin.cli import faults, messages, output, scenario
from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from tocsin.simulate.policy import Policy
    from tocsin.simulate.record import SimulationRecord

app = typer.Typer(help="Run brokers, coordinator and subscribers in virtual time.", no_args_is_help=True)
app.command("faults")(faults.faults)
app.add_typer(scenario.app, name="scenario")

PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="What balances: none, ldm, sdm, gsh, ldm+gsh, sdm+gsh, ours, a planner's name or package.module:Class.",
    ),
]
Alpha = Annotated[float | None, typer.Option(min=0, help="Migrate when cov is above this; else the policy's own.")]
Beta = Annotated[float, typer.Option(min=0, help="Balance only when the mean load is above this, bytes per second.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Keep the whole record, as JSON.", dir_okay=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")]


@app.callback()
def simulate() -> None:
    """Run brokers, coordinator and subscribers in virtual time."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of 'tocsin simulate scenario', or your own.")],
    policy: PolicyOption = "ours",
    placement: Annotated[
        str, typer.Option(help="Who begins where: nearest, round-robin, random, least-loaded or two-choices.")
    ] = "nearest",
    level: Annotated[
        Literal["counted", "frames"],
        typer.Option(help="Add deliveries up, or hand each over, with what was missed while away: takes far longer."),
    ] = "counted",
    seed: Annotated[int, typer.Option(min=0, help="The same seed is the same run.")] = 1,
    alpha: Alpha = None,
    beta: Beta = 0.0,
    out: OutOption = None,
    json: JsonOption = False,
) -> None:
    """Play a scenario: how loads develop under a policy, what is moved, why, and how late deliveries are."""
    from tocsin.simulate.scenario import read
    from tocsin.simulate.simulation import INTERVAL, Simulation

    played, chosen = read(file), _policy(policy, placement, alpha, beta)
    if played.seconds < INTERVAL:
        raise InvalidError(
            f"{file} takes {played.seconds:g} s; loads are looked at every {INTERVAL:g} s, so give it more"
        )
    queues = any(broker.capacity for broker in played.brokers)
    _play(
        lambda progress: Simulation(played, seed, chosen, level, progress=progress).run(),
        played.seconds,
        queues=queues,
        out=out,
        json=json,
    )


@app.command()
def fluid(
    subscribers: Annotated[int, typer.Option(min=10, help="How many subscribers there are.")] = 1_000_000,
    brokers: Annotated[int, typer.Option(min=1, help="How many brokers there are.")] = 100,
    policy: PolicyOption = "ours",
    popularity: scenario.Popularity = "zipf:1.05",
    skew: Annotated[float, typer.Option(min=0, help="Exponent of the Zipf law of the brokers' first shares.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed is the same run.")] = 1,
    minutes: scenario.Minutes = 30,
    moves: Annotated[
        float | None,
        typer.Option("--moves-per-second", min=1, help="So many moves begin at most; else as in a network."),
    ] = None,
    alpha: Alpha = None,
    beta: Beta = 0.0,
    out: OutOption = None,
    json: JsonOption = False,
) -> None:
    """Rates only, with no messages: what a policy does for a million subscribers, in minutes.

    There is a BE subscription for every 10 subscribers, who hold 10 to 30 each; rates go up and down as in the paper.
    """
    from tocsin.balance.instances.kinds import InstanceKind, make
    from tocsin.coordinator.limits import CoordinatorLimits
    from tocsin.simulate.fluid import Fluid
    from tocsin.simulate.scenarios import popularity as laws

    law, chosen, seconds = laws.popularity(popularity), _policy(policy, "nearest", alpha, beta), minutes * 60.0
    kind = InstanceKind(subscribers, brokers, max(subscribers // 10, 1), (10, 30), law.exponent, skew=skew)
    kind = replace(kind, communities=law.communities)
    limits = replace(CoordinatorLimits(), per_second=moves) if moves else CoordinatorLimits()

    def flow(progress: Callable[[float], None]) -> SimulationRecord:
        return Fluid(*make(kind, seed), seed, chosen, seconds, limits=limits, progress=progress).run()

    _play(flow, seconds, queues=False, out=out, json=json)


def _policy(name: str, placement: str, alpha: float | None, beta: float) -> Policy:
    """A scheme of the experiments as the simulator takes it. Unknown names are refused before anything is run."""
    from tocsin.balance import policies
    from tocsin.experiment.schemes import above, scheme
    from tocsin.experiment.series.simulator import policy as made

    policies.placement(placement)
    chosen = above(scheme(name), beta)
    if alpha is not None and chosen.thresholds is not None:
        chosen = chosen.at(chosen.title, alpha=alpha)
    return replace(made(chosen), placement=policies.SHORT.get(placement, placement))


def _play(
    simulation: Callable[[Callable[[float], None]], SimulationRecord],
    seconds: float,
    *,
    queues: bool,
    out: Path | None,
    json: bool,
) -> None:
    """Runs with a bar, and prints and keeps what came out."""
    import msgspec

    from tocsin.cli.course import keep, render, summary

    if out is not None and not out.parent.is_dir():
        raise InvalidError(f"{out}: cannot be written: there is no directory {out.parent}")
    # At the end of the process nothing collects what is left: to look at millions of objects takes seconds.
    atexit.register(gc.freeze)
    begin = time.perf_counter()
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=messages) as bar:
        task = bar.add_task("virtual time", total=seconds)
        record = simulation(lambda now: bar.update(task, completed=now))
        bar.update(task, completed=seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = summary(record, queues, time.perf_counter() - begin, peak)
    if out is not None:
        keep(out, record)
    if json:
        output.print(Text(msgspec.json.encode(figures).decode()), soft_wrap=True)
        return
    for part in render(record, figures):
        output.print(part, soft_wrap=isinstance(part, Text))
