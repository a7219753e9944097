"""``tocsin simulate scenario``: scenario files, made by generators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tocsin.cli import messages, output
from tocsin.errors import InvalidError

if TYPE_CHECKING:
    from tocsin.simulate.scenario import Scenario

app = typer.Typer(help="Write a scenario file for 'tocsin simulate run'.", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.", dir_okay=False)]
Seed = Annotated[int, typer.Option(min=0, help="The same seed makes the same scenario.")]
Brokers = Annotated[int, typer.Option(min=1, help="How many brokers there are.")]
Capacity = Annotated[
    float | None, typer.Option(min=1, help="What each broker can send, bytes per second; else it never queues.")
]
Minutes = Annotated[int, typer.Option(min=1, help="How long it takes.")]
Popularity = Annotated[
    str,
    typer.Option(
        metavar="LAW", help="How popular subscriptions are: uniform, zipf[:EXPONENT] or communities[:GROUPS]."
    ),
]


@app.command("paper")
def of_paper(
    out: Out,
    subscribers: Annotated[int, typer.Option(min=1, help="How many subscribers there are.")] = 10_000,
    brokers: Brokers = 10,
    seed: Seed = 1,
    popularity: Popularity = "uniform",
    skew: Annotated[float, typer.Option(min=0, help="Exponent of the Zipf law of who lives near which broker.")] = 0.8,
    minutes: Minutes = 30,
    capacity: Capacity = None,
) -> None:
    """The paper's simulation (section 6.2.1), or one of its kind: 10,000 subscribers, rates that go up and down."""
    from tocsin.simulate.scenarios import popularity as laws
    from tocsin.simulate.scenarios.paper import Paper, paper

    law = laws.popularity(popularity)
    options = Paper(
        subscribers,
        brokers,
        seconds=minutes * 60.0,
        subscribing=min(8, minutes / 2) * 60.0,
        popularity=law.exponent,
        communities=law.communities,
        skew=skew,
        capacity=capacity,
    )
    _write(out, paper(options, seed))


@app.command("city")
def of_city(
    out: Out,
    subscribers: Annotated[
        int | None, typer.Option(min=1, help="How many people there are; else 400, or all of the trace.")
    ] = None,
    brokers: Brokers = 5,
    seed: Seed = 1,
    roads: Annotated[
        Path | None, typer.Option(metavar="FILE.wkt", help="A road map: a LINESTRING (x y, …) in metres per line.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Recorded locations: columns t, node, x, y.")
    ] = None,
    minutes: Minutes = 30,
    capacity: Capacity = None,
) -> None:
    """People of a city who log in where they are, go about, leave, and come back somewhere else.

    They and what they want are those of the emergency application; what channels find is what is reported in the city.
    """
    from tocsin.simulate.scenarios.city import CityScenario, city

    # Of less than half an hour, people take the same part to come and to decide as of a whole one.
    opening = min(minutes / 30, 1.0)
    options = CityScenario(subscribers, brokers, minutes * 60, roads, trace, capacity=capacity)
    options = replace(options, arriving=options.arriving * opening, deciding=options.deciding * opening)
    with messages.status("following everybody about the city …"):
        made = city(options, seed)
    _write(out, made)


def _write(path: Path, scenario: Scenario) -> None:
    from tocsin.simulate.scenario import write

    try:
        write(path, scenario)
    except OSError as error:
        raise InvalidError(f"{path}: cannot be written: {error.strerror}") from None
    text = (
        f"{path}: {len(scenario.subscribers.x):,} subscribers, {len(scenario.brokers):,} brokers, "
        f"{len(scenario.lines.channel):,} BE subscriptions, {scenario.seconds / 60:g} minutes; "
        f"run it with 'tocsin simulate run {path}'"
    )
    output.print(Text(text), soft_wrap=True)
