"""``tocsin balance``: who should be on which broker, in a running network, and for instances in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.cli.connection import CoordinatorOption, TokenOption, connect_coordinator

app = typer.Typer(
    help="Balance a running network (plan, apply, drain, undrain, on, off), or instances in files (solve, generate).",
    no_args_is_help=True,
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as one JSON object.")]
BrokerArgument = Annotated[str, typer.Argument(metavar="BROKER", help="The broker's name, as in 'tocsin top'.")]
_PAPERS = "Of ldm, sdm and multistage"


@app.command()
def plan(
    context: typer.Context, coordinator: CoordinatorOption = None, token: TokenOption = None, json: JsonOption = False
) -> None:
    """Show what would be moved now, and why. Nothing is moved."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        _show(server.get("/plan"), json, carried_out=False)


@app.command()
def apply(
    context: typer.Context, coordinator: CoordinatorOption = None, token: TokenOption = None, json: JsonOption = False
) -> None:
    """Make a plan for the loads as they are now, and carry it out."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        _show(server.post("/plan", b"", "application/json"), json, carried_out=True)


@app.command()
def drain(
    context: typer.Context,
    broker: BrokerArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Return when nobody is left there.")] = False,
    coordinator: CoordinatorOption = None,
    token: TokenOption = None,
) -> None:
    """Empty a broker, and keep it empty: for maintenance, or for good."""
    from tocsin.cli.network import wait_empty

    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        server.put(f"/brokers/{quote(broker, safe='')}/draining", b'{"on": true}')
        messages.print(Text(f"{broker} is being emptied; 'tocsin balance undrain {broker}' lets it serve again."))
        if wait:
            wait_empty(server, broker)
            messages.print(Text(f"{broker} is empty."))


@app.command()
def undrain(
    context: typer.Context, broker: BrokerArgument, coordinator: CoordinatorOption = None, token: TokenOption = None
) -> None:
    """Let a drained broker have subscribers again."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        server.put(f"/brokers/{quote(broker, safe='')}/draining", b'{"on": false}')
    messages.print(Text(f"{broker} gets subscribers again."))


@app.command()
def on(context: typer.Context, coordinator: CoordinatorOption = None, token: TokenOption = None) -> None:
    """Balance without being asked."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        server.put("/balancing", b'{"on": true}')
    messages.print("The network balances itself.")


@app.command()
def off(context: typer.Context, coordinator: CoordinatorOption = None, token: TokenOption = None) -> None:
    """Balance only when asked ('tocsin balance apply'). Draining goes on."""
    with connect_coordinator(invocation(context).settings, coordinator, token) as server:
        server.put("/balancing", b'{"on": false}')
    messages.print("The network no longer balances itself; 'tocsin balance on' lets it again.")


def _show(answer: bytes, json: bool, *, carried_out: bool) -> None:
    from tocsin.cli.proposal import render

    if json:
        typer.echo(answer.decode())
        return
    for part in render(answer, carried_out=carried_out):
        output.print(part)


@app.command()
def solve(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE.npz", help="The instance.")],
    planner: Annotated[
        str,
        typer.Option(
            "--planner",
            help="The paper's ldm, sdm, gsh or multistage; or shuffle (the lowest load) or migrate (few moves).",
        ),
    ] = "migrate",
    start: Annotated[
        Literal["keep", "empty"],
        typer.Option("--start", help="Plan from where subscribers are now, or as if nobody had a broker yet."),
    ] = "keep",
    target: Annotated[
        float | None,
        typer.Option(
            "--target-max",
            metavar="RATIO",
            min=1,
            help="Stop once the highest load is so many times the lower bound; else as low as the planner can.",
        ),
    ] = None,
    max_moves: Annotated[
        int | None, typer.Option("--max-moves", min=0, help="Move at most so many subscribers.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same plan.")] = 0,
    alpha: Annotated[float | None, typer.Option(min=0, help=f"{_PAPERS}: migrate while cov is above it.")] = None,
    beta: Annotated[float | None, typer.Option(min=0, help=f"{_PAPERS}: and the mean load above this.")] = None,
    gamma: Annotated[float | None, typer.Option(min=0, help="Of multistage: shuffle if cov is above it.")] = None,
    theta: Annotated[float | None, typer.Option(min=0, help="Of multistage: and the mean load above this.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PLAN.npz", help="Write the plan there: the new broker of each subscriber, a."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """Plan for an instance, and print the loads before and after, the moves and the bounds.

    An instance holds idx (the BE subscriptions of each subscriber, one after the other), indptr (where in idx each
    subscriber begins, and the end), lam (bytes per second of each BE subscription), a0 (the broker of each subscriber
    now), m (how many brokers there are) and, if these differ, capacity (load then means load ÷ capacity).

    Who moves is counted from a0, also with --start empty.
    """
    import msgspec

    from tocsin.balance.instances.file import read, write_plan
    from tocsin.balance.model.problem import Problem
    from tocsin.balance.policies import planner as planner_of
    from tocsin.cli.solution import brokers, find_solution

    given = {"alpha": alpha, "beta": beta, "gamma": gamma, "theta": theta}
    policy = planner_of(planner, **{name: value for name, value in given.items() if value is not None})
    workload, assignment = read(instance)
    problem = Problem(workload, assignment, target=target, max_moves=max_moves, seed=seed)
    with messages.status("planning …"):
        solution = find_solution(problem, policy, from_nothing=start == "empty")
    if out:
        write_plan(out, solution.plan)
    if json:
        typer.echo(msgspec.json.encode(solution.answer).decode())
        return
    output.print(brokers(solution.plan))
    for remark in solution.remarks:
        output.print(Text(remark))


@app.command()
def generate(
    kind: Annotated[str, typer.Argument(help="P, S, SC, L, LC or XL.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed makes the same instance.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it there; else to KIND.npz.")] = None,
) -> None:
    """Make a seeded instance of a kind that planners are measured on.

    P is the paper's prototype (400 subscribers, 5 brokers), S its simulation (10,000 and 10), L has 100,000 and 50, XL
    1,000,000 and 100; SC and LC are S and L with communities of interest.
    """
    from tocsin.balance.instances.file import write
    from tocsin.balance.instances.kinds import generate as made

    workload, assignment = made(kind, seed)
    path = out or Path(f"{kind}.npz")
    write(path, workload, assignment)
    messages.print(
        Text(
            f"{path}: {workload.subscribers:,} subscribers, {workload.brokers:,} brokers, "
            f"{workload.subscriptions:,} BE subscriptions, held {len(workload.idx):,} times"
        ),
        soft_wrap=True,
    )
