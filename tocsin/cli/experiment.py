"""``tocsin experiment``: the paper's evaluation, repeated and drawn."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from tocsin.cli import is_interrupt, messages, output

app = typer.Typer(help="Repeat the paper's experiments: tables, figures and a report of each.", no_args_is_help=True)

_COLOURS = {"yes": "green", "in part": "yellow", "no": "red", "not measured": "dim", "not judged": "dim"}

Seed = Annotated[int, typer.Option(help="Of everything that is random; the same seed gives the same run", min=0)]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Where it goes; a run that was interrupted there goes on", file_okay=False
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, to see that it works; it judges no claims")]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAME", help="Also this policy: a planner's name or package.module:Class; may be repeated"
    ),
]


@app.command()
def scale(seed: Seed = 1, quick: Quick = False, policy: Policies = None, out: Out = None) -> None:
    """Planners from 10,000 to 1,000,000 subscribers on 5 to 100 brokers: loads, moves, seconds, memory."""
    _run("scale", out, seed=seed, quick=quick, policies=policy or [])


@app.command()
def simulation(
    seed: Seed = 1,
    seeds: Annotated[int, typer.Option(help="So many, one after the other; claims are judged by all", min=1)] = 5,
    quick: Quick = False,
    policy: Policies = None,
    subscribers: Annotated[
        int, typer.Option(help="Fewer are quicker; BE subscriptions and β shrink with them", min=500)
    ] = 10_000,
    out: Out = None,
) -> None:
    """The paper's simulation: 10 brokers, 10,000 subscribers, LDM, SDM, GSH and ours, and the thresholds α and β."""
    _run("simulation", out, seed=seed, seeds=seeds, quick=quick, policies=policy or [], subscribers=subscribers)


@app.command()
def latency(seed: Seed = 1, quick: Quick = False, policy: Policies = None, out: Out = None) -> None:
    """Delays when the crowded broker has more to send than it can, with balancing and without."""
    _run("latency", out, seed=seed, quick=quick, policies=policy or [])


@app.command()
def slices(
    seed: Seed = 1,
    quick: Quick = False,
    real: Annotated[
        bool,
        typer.Option(
            "--real", help="Also what 1, 2 and 3 real workers take on this machine, which needs tocsin\\[data] and Java"
        ),
    ] = False,
    out: Out = None,
) -> None:
    """Processing nodes that share slices, simulated: 10 to 1,000 nodes, coarse and fine slices, elasticity."""
    _run("slices", out, seed=seed, quick=quick, real=real)


@app.command("testbed")
def real_system(
    seed: Seed = 1,
    seeds: Annotated[int, typer.Option(help="So many, one after the other", min=1)] = 1,
    quick: Quick = False,
    placement: Annotated[
        list[str] | None, typer.Option("--placement", help="Only this one: RND, RR, NR or LL; may be repeated")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only this one: none, ldm, ldm-fine, sdm, ldm+gsh, sdm+gsh, ours, a planner or package.module:Class",
        ),
    ] = None,
    speed: Annotated[float, typer.Option(help="So many seconds of the paper's in a second", min=1, max=60)] = 1.0,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="People move as recorded (Parquet: t, node, x, y) instead of seeded"),
    ] = None,
    roads: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of a road map (WKT: LINESTRINGs) instead of a seeded city")
    ] = None,
    out: Out = None,
) -> None:
    """The real system: 5 brokers, 400 moving subscribers, 30 minutes for each placement and policy (20 cells)."""
    files = {"trace": trace and trace.absolute(), "roads": roads and roads.absolute()}
    chosen = {"placements": [name.upper() for name in placement or []], "policies": policy, **files}
    rest = {key: value for key, value in chosen.items() if value}
    _run("testbed", out, seed=seed, seeds=seeds, quick=quick, speed=speed, **rest)


QuoteFile = Annotated[
    Path | None,
    typer.Option(
        "--quotes",
        metavar="FILE",
        help="Stock quotes to publish (Parquet: symbol, open, high, low, close, volume, date) instead of seeded ones",
        exists=True,
        dir_okay=False,
    ),
]


@app.command("padres-local")
def padres_local(seed: Seed = 1, quick: Quick = False, quotes: QuoteFile = None, out: Out = None) -> None:
    """The content-based overlay: four unequal edges of a cluster, and 2,000 subscribers who all join the weakest."""
    _run("padres-local", out, seed=seed, quick=quick, quotes=quotes)


@app.command("padres-global")
def padres_global(seed: Seed = 1, quick: Quick = False, quotes: QuoteFile = None, out: Out = None) -> None:
    """The content-based overlay: four clusters in a chain, and 2,000 subscribers who all join an edge of the first."""
    _run("padres-global", out, seed=seed, quick=quick, quotes=quotes)


@app.command("padres-scale")
def padres_scale(seed: Seed = 1, quick: Quick = False, quotes: QuoteFile = None, out: Out = None) -> None:
    """The content-based overlay: how long deliveries take with more edges in a cluster, and with more clusters."""
    _run("padres-scale", out, seed=seed, quick=quick, quotes=quotes)


@app.command()
def balancers(seed: Seed = 1, quick: Quick = False, quotes: QuoteFile = None, out: Out = None) -> None:
    """The overlay's balancer and the coordinator's on the same subscribers, publications and unequal brokers."""
    _run("balancers", out, seed=seed, quick=quick, quotes=quotes)


def _run(name: str, out: Path | None, **settings: Any) -> None:
    """Runs an experiment and says where its report is; interrupted, how to go on."""
    from tocsin.experiment.catalog import study
    from tocsin.experiment.conduct import conduct
    from tocsin.experiment.figures.style import require
    from tocsin.experiment.progress import ProgressBar

    require()
    path = out or Path("results") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    command = " ".join(["tocsin", *sys.argv[1:]])
    try:
        chosen = study(name, **settings)
        outcome = conduct(chosen, path, command, ProgressBar(messages))
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        messages.print(f"Stopped. What is done is in {path}; the same command with --out {path} goes on.")
        raise typer.Exit(130) from None
    if chosen.smaller:
        output.print(
            f"A small run, with {chosen.smaller}: claims made for the full size are not judged.", soft_wrap=True
        )
    for verdict in outcome.verdicts:
        output.print(Text.assemble((f"{verdict.holds:>12}  ", _COLOURS[verdict.holds]), verdict.claim), soft_wrap=True)
    output.print(f"The report is {outcome.report}", soft_wrap=True)
