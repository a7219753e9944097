"""The slices of feeds as ``tocsin slices`` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tocsin.balance.model.units import rate
from tocsin.cli.connection import RemoteServer
from tocsin.errors import NotFoundError, UnavailableError
from tocsin.model import names
from tocsin.model.slices import FeedSlices, NodeFigures, NodesNeeded, SliceFigures, SlicesStatus

_STYLES = {
    "lost": "bold red",
    "stuck": "red",
    "failing": "red",
    "draining": "cyan",
    "leaving": "cyan",
    "joining": "green",
}
_LOADS = {"overloaded": "red", "underloaded": "dim"}


def status_of(data: RemoteServer) -> SlicesStatus:
    """How things stand, as a data cluster says; what answers otherwise is none, and an UnavailableError."""
    try:
        return msgspec.json.decode(data.get("/slices"), type=SlicesStatus)
    except msgspec.DecodeError:
        raise UnavailableError(
            f"{data.url} answers, but not as a data cluster does; {data.option} names another"
        ) from None


def screen(status: SlicesStatus, feed: str | None = None, each: bool = False) -> RenderableType:
    """What is shown: all feeds, or one; with each slice, or only the nodes."""
    known = [one.feed for one in status.feeds]
    if feed is not None and feed not in known:
        raise NotFoundError(f"there is no feed {feed}{names.suggestion(feed, known)}")
    if not status.feeds:
        return Text("no feeds yet; CREATE FEED makes one")
    chosen = [one for one in status.feeds if feed in (None, one.feed)]
    shown: list[RenderableType] = []
    for one in chosen:
        shown += [Text()] if shown else []
        shown += [_title(one), *(_feed(one, each) if one.shared else ())]
    if needed := _describe_need(status.needed):
        shown += [Text(), needed]
    if status.drained:
        shown += [Text(), Text(f"drained: {', '.join(status.drained)}", style="cyan")]
    return Group(*shown)


def ranges(slices: Iterable[int]) -> str:
    """Numbers, with runs of them as one: 0-3 7 9-10."""
    runs: list[list[int]] = []
    for number in sorted(slices):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def size(number: float) -> str:
    """Bytes, with a unit: 1.2 MB."""
    return rate(number).removesuffix("/s")


def count(number: float) -> str:
    """A number, with a unit for thousands: 1.2 k."""
    return size(number).removesuffix("B").strip()


def _describe_need(needed: NodesNeeded) -> Text | None:
    """That there are too few nodes, or too many."""
    if needed.wanted:
        return Text("all nodes are busy: one more is wanted ('tocsin worker')", style="yellow")
    if needed.leaving:
        return Text(f"not needed, leaves when it is empty: {', '.join(needed.leaving)}", style="cyan")
    if needed.spare:
        return Text(f"not needed, may be stopped: {needed.spare}", style="cyan")
    return None


def _title(feed: FeedSlices) -> Text:
    where = Text.assemble((feed.feed, "bold"), f" into {feed.dataset}: ")
    if not feed.shared:
        return where.append(f"not shared ({feed.reason})")
    moving = sum(one.taker is not None for one in feed.slices)
    nodes = "1 node" if len(feed.nodes) == 1 else f"{len(feed.nodes)} nodes"
    return where.append(f"{len(feed.slices)} slices, {nodes}, {moving} moving, {feed.moved:,} moved, term {feed.term}")


def _feed(feed: FeedSlices, each: bool) -> Iterator[RenderableType]:
    yield _nodes(feed)
    nobody = [one.slice for one in feed.slices if one.owner is None]
    if nobody:
        yield Text(f"nobody has {ranges(nobody)}", style="bold red")
    for name, reason in feed.declined.items():
        yield Text(f"{name} cannot process it: {reason}", style="red")
    for node in feed.nodes:
        if node.problem:
            yield Text(f"{node.name} does not get on: {node.problem}", style="red")
    for one in feed.slices:
        if one.left_out:
            yield Text(f"{one.slice} is left out by {one.owner}: {one.left_out}", style="red")
    yield from _moves(feed)
    if each:
        yield _each(feed.slices)
    else:
        for node in feed.nodes:
            yield Text(f"{node.name} has {ranges(s.slice for s in feed.slices if s.owner == node.name) or 'none'}")
    yield Text(feed.decision, style="dim")


def _nodes(feed: FeedSlices) -> RenderableType:
    if not feed.nodes:
        return Text("no processing nodes; 'tocsin worker' starts one", style="red")
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("node", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for heading in ("slices", "comes", "waits", "rows/s", "batch", "cpu", "mem"):
        table.add_column(heading, justify="right", no_wrap=True)
    for node in feed.nodes:
        table.add_row(
            Text(node.name),
            _state(node),
            f"{node.slices}",
            rate(node.rate),
            size(node.backlog),
            count(node.rows),
            f"{node.batch_seconds:.2f} s" if node.batch_seconds < 10 else f"{node.batch_seconds:.0f} s",
            f"{node.cpu:.0%}",
            f"{node.memory:.0%}",
        )
    return table


def _state(node: NodeFigures) -> Text:
    """What is out of the ordinary with a node; if nothing is, how busy it is."""
    if node.state != "serving":
        return Text(node.state, style=_STYLES.get(node.state, ""))
    return Text(node.load, style=_LOADS.get(node.load, ""))


def _moves(feed: FeedSlices) -> Iterator[Text]:
    pairs: dict[tuple[str, str], list[int]] = {}
    for one in feed.slices:
        if one.taker is not None:
            pairs.setdefault((one.owner or "nobody", one.taker), []).append(one.slice)
    for (giver, taker), slices in pairs.items():
        yield Text(f"moving {ranges(slices)} from {giver} to {taker}", style="yellow")


def _each(slices: list[SliceFigures]) -> RenderableType:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("slice", justify="right")
    table.add_column("node")
    for heading in ("comes", "waits", "records", "position", "pause"):
        table.add_column(heading, justify="right")
    for one in slices:
        owner = Text(one.owner or "nobody", style="" if one.owner else "bold red")
        pause = "" if one.pause is None else f"{one.pause:.2f} s"
        values = (rate(one.rate), size(one.backlog), f"{one.records:,}", f"{one.position:,}", pause)
        table.add_row(f"{one.slice}", owner, *values)
    return table
