"""``tocsin bench``: measurements on this machine, with their targets and baselines."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import invocation, messages, output
from tocsin.errors import InvalidError

app = typer.Typer(help="Measure Tocsin on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure Tocsin on this machine."""


@app.command()
def data(
    context: typer.Context,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            help="Only ingestion, latency, arrival, logs, workers, executions, near or nodes; may be repeated",
        ),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Numbers of subscriptions, smallest first")] = "10000,100000,1000000",
    seconds: Annotated[float, typer.Option(help="How long to publish in each measurement", min=5)] = 30,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON lines instead of a table")] = False,
) -> None:
    """Measure the data cluster: executions, near, ingestion, latency, memory, nodes. Takes about half an hour."""
    import msgspec

    from tocsin.bench.data.suite import PARTS, run
    from tocsin.bench.report import show

    unknown = [name for name in part or [] if name not in PARTS]
    if unknown:
        raise InvalidError(f"there is no part {unknown[0]}; the parts are {', '.join(PARTS)}")
    settings = invocation(context).settings
    numbers = _numbers(sizes)
    figures = []
    with messages.status("") as status:
        for figure in run(settings, part or list(PARTS), numbers, seconds, lambda text: status.update(f"{text} …")):
            figures.append(figure)
            if json:
                output.print(msgspec.json.encode(figure).decode(), soft_wrap=True)
    if not json:
        groups = list(dict.fromkeys(figure.group for figure in figures))
        show(sorted(figures, key=lambda figure: groups.index(figure.group)), output, "tocsin bench data")


@app.command()
def balance(
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only instances of this kind: P, S, SC, L, LC or XL; may be repeated"),
    ] = None,
    planner: Annotated[
        list[str] | None, typer.Option("--planner", help="Only this planner, beside gsh; may be repeated")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds of the instances; figures are medians over them")] = "11",
    peer: Annotated[
        bool, typer.Option("--peer", help="Also Mt-KaHyPar, if it is installed; takes minutes on L and LC")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON lines instead of a table")] = False,
) -> None:
    """Measure the planners side by side, on one core: loads, moves, seconds, memory. XL only when asked for."""
    import msgspec

    from tocsin.balance.instances.kinds import KINDS as KNOWN
    from tocsin.balance.policies import PLANNERS
    from tocsin.bench.balance.mtkahypar import require
    from tocsin.bench.balance.suite import KINDS, run
    from tocsin.bench.report import show

    for what, names, known in (("kind", kind, KNOWN), ("planner", planner, PLANNERS)):
        unknown = [name for name in names or [] if name not in known]
        if unknown:
            raise InvalidError(f"there is no {what} {unknown[0]}; there are {', '.join(known)}")
    if peer:
        require()
    figures = []
    with messages.status("") as status:
        for figure in run(
            kind or KINDS, planner or list(PLANNERS), _numbers(seeds), peer, lambda text: status.update(f"{text} …")
        ):
            figures.append(figure)
            if json:
                output.print(msgspec.json.encode(figure).decode(), soft_wrap=True)
    if not json:
        show(figures, output, "tocsin bench balance")


@app.command()
def broker(
    part: Annotated[
        list[str] | None,
        typer.Option("--part", help="Only this part: fanout, members, migration, publishing or latency"),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Numbers of subscribers of the fan-out")] = "1000,10000",
    rounds: Annotated[int, typer.Option(help="Rounds of each fan-out; figures are medians over them", min=1)] = 50,
    seconds: Annotated[float, typer.Option(help="How long to serve in the other measurements", min=5)] = 60,
    peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Also redis-server, nats-server and mosquitto")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON lines instead of a table")] = False,
) -> None:
    """Measure brokers and clients: fan-out beside other servers, memory, logins, moving, publishing, latency.

    Takes about ten minutes.
    """
    import msgspec

    from tocsin.bench.broker.suite import PARTS, run
    from tocsin.bench.report import show

    unknown = [name for name in part or [] if name not in PARTS]
    if unknown:
        raise InvalidError(f"there is no part {unknown[0]}; the parts are {', '.join(PARTS)}")
    figures = []
    with messages.status("") as status:
        for figure in run(
            part or PARTS, _numbers(sizes), rounds, seconds, peers, lambda text: status.update(f"{text} …")
        ):
            figures.append(figure)
            if json:
                output.print(msgspec.json.encode(figure).decode(), soft_wrap=True)
    if not json:
        show(figures, output, "tocsin bench broker")


@app.command()
def content(
    sizes: Annotated[str, typer.Option(help="Numbers of subscriptions")] = "1000,10000,100000,1000000",
    quotes: Annotated[
        Path | None, typer.Option(help="Quotes to publish, as a Parquet file; made from the seed otherwise")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn")] = 11,
    turns: Annotated[int, typer.Option(help="Turns of each; figures are medians over them", min=1)] = 5,
    seconds: Annotated[float, typer.Option(help="How long a turn takes", min=0)] = 1,
    limit: Annotated[float, typer.Option(help="Leave out who takes longer to insert, in seconds", min=1)] = 120,
    peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Also the crate a-tree, if cargo builds it")] = True,
    padres: Annotated[
        Path | None, typer.Option(help="Also PADRES: its jar with all it needs, or a directory of classes and jars")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON lines instead of a table")] = False,
) -> None:
    """Measure content-based matching on one core, beside the naive scan and others. Takes about half an hour."""
    import msgspec

    from tocsin.apps.stocks.quotes import make_quotes, read_quotes
    from tocsin.bench.content.peers import find_peers
    from tocsin.bench.content.suite import Bench
    from tocsin.bench.report import show

    numbers = _numbers(sizes)
    if min(numbers) < 1:
        raise InvalidError(f"--sizes {sizes}: there is nothing to measure without subscriptions")
    published = read_quotes(quotes) if quotes else make_quotes(seed)
    figures = []
    with messages.status("") as status:
        bench = Bench(turns, seconds, limit, lambda text: status.update(f"{text} …"), messages.print)
        find = partial(find_peers, padres) if peers else lambda *_: ()
        for figure in bench.run(numbers, published, seed, find):
            figures.append(figure)
            if json:
                output.print(msgspec.json.encode(figure).decode(), soft_wrap=True)
    if not json:
        show(figures, output, "tocsin bench content")


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InvalidError(f"{text!r} is not a list of whole numbers; write them as 1,2,3") from None
