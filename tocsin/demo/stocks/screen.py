"""How the demo of stock alerts looks: a sample of alerts, who moves, and the edges at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin.crowd.delays import Delays, within
from tocsin.demo.board import bar
from tocsin.demo.stage import StageScreen, count
from tocsin.demo.stocks.check import AlertVerdict
from tocsin.demo.stocks.people import clock, describe
from tocsin.overlay.client import Note
from tocsin.overlay.server.status import OverlayFigures

_FLOWS: Final = 3
_MOST_MISSED: Final = 5
_OVERLOADED: Final = 0.95
_EXPLANATION: Final = (
    "",
    "Everybody comes to edge-1, which has far more to do then than the others. No coordinator runs: every edge tells",
    "the others how it is, and two of them at a time agree on who is to go.",
    "O_r is the part of an edge's bandwidth that is in use, I_r the part of its matching; edges differ in what they",
    "can carry. BUSY is in a session, STABILIZING rests after one, N/A is overloaded and takes nobody.",
    "cov is the standard deviation of O_r divided by its mean: 0 is perfectly even.",
)


class StockScreen(StageScreen):
    """Prints to a console. ``bandwidths`` are those of the edges, in bytes per second, by their names."""

    def __init__(self, console: Console, bandwidths: Mapping[str, float]) -> None:
        super().__init__(console)
        self._bandwidths = bandwidths

    def introduce(self, people: int, heads: int) -> None:
        """What is to be seen."""
        edges = count(len(self._bandwidths), "edge")
        self.say("Tocsin: subscribe to what publications say, and be told what matches.", style="bold")
        self.say(
            f"Stock quotes are published to {count(heads, 'head')}; {people:,} people have alerts on them, and {edges} "
            "deliver.\n"
        )

    def gathered(self, filters: Sequence[str]) -> None:
        """Who is there."""
        self.say(
            f"{count(len(filters), 'person has', 'people have')} an alert each, of which {len(set(filters)):,} differ."
        )

    def explain(self, rate: float, seconds: int | None) -> None:
        """What the figures mean, and what happens when."""
        until = f"for {seconds} seconds" if seconds else "until you press Ctrl-C"
        for line in _EXPLANATION:
            self.say(line)
        self.say(f"Publishing {rate:g} quotes a second, {until}.\n")

    def told(self, person: str, where: str, note: Note) -> None:
        """An alert that somebody got."""
        quote = note.content
        self.happen(
            Text.assemble(
                (f"{clock()}  ", "dim"),
                (f"{person:<5}", "bold"),
                (describe(where), "cyan"),
                f"  {quote['symbol']} {quote['date']}: high {quote['high']:g}, low {quote['low']:g}, "
                f"{float(quote['volume']):,.0f} sold",
            )
        )

    def look(self, second: int, edges: Sequence[OverlayFigures], delivered: int) -> None:
        """How it stands, once in a second."""
        begun = highest_output(edges) > 0
        self.stand(second, f"{evenness(edges)}; {count(delivered, 'alert')}", self._table(edges), begun)

    def moves(self, moves: Counter[tuple[str, str]]) -> None:
        """Who has gone over to another edge."""
        gone = ", ".join(f"{number} from {before} to {after}" for (before, after), number in moves.most_common(_FLOWS))
        more = ", …" if len(moves) > _FLOWS else ""
        self.say(f"── {count(moves.total(), 'person', 'people')} moved without a gap: {gone}{more}", style="green")

    def conclude(self, worst: Sequence[OverlayFigures], last: Sequence[OverlayFigures]) -> None:
        """The loads at their worst and in the end."""
        table = Table("", "at its worst", "in the end", box=None, header_style="bold", pad_edge=False)
        table.add_row("highest O_r of an edge", *(f"{highest_output(each):.2f}" for each in (worst, last)))
        table.add_row("cov of the edges' O_r", *(f"{spread(each):.2f}" for each in (worst, last)))
        table.add_row("people on the fullest edge", *(str(max(one.clients for one in each)) for each in (worst, last)))
        self.console.print(table)
        self.say()

    def judge(self, second: int, published: int, verdict: AlertVerdict, moved: int, waits: Delays) -> None:
        """What was published and delivered, in sentences."""
        self.say(f"In {second} s: {published:,} quotes published, {count(verdict.delivered, 'alert')} delivered.")
        self.say(
            f"Of what was published and asked for: {verdict.lost:,} lost, {verdict.twice:,} delivered twice, "
            f"{verdict.disordered:,} out of order, {verdict.strange:,} not asked for; {moved:,} moves between edges "
            "meanwhile."
        )
        self.say(
            f"From publishing to the person: half within {within(waits, 0.5):.2f} s, 95 % within "
            f"{within(waits, 0.95):.2f} s."
        )
        for missed in verdict.missed[:_MOST_MISSED]:
            self.say(f"{missed}.")
        self.say()

    def _table(self, edges: Sequence[OverlayFigures]) -> Table:
        table = Table(box=None, header_style="dim", pad_edge=False)
        for heading in ("edge", "of", "O_r"):
            table.add_column(heading, no_wrap=True)
        for heading in ("", "kB/s", "I_r", "people"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("state", no_wrap=True)
        for edge in edges:
            table.add_row(*self._row(edge))
        return table

    def _row(self, edge: OverlayFigures) -> list[Text]:
        output, bandwidth = output_of(edge), self._bandwidths[edge.broker]
        style = "red" if output > _OVERLOADED else "green"
        return [
            Text(edge.broker, style="bold"),
            Text(edge.cluster, style="dim"),
            Text(bar(output), style=style),
            Text(f"{output:.2f}"),
            Text(f"of {bandwidth / 1000:,.0f}"),
            Text(f"{edge.metrics.input:.3f}" if edge.metrics else "-"),
            Text(str(edge.clients)),
            Text(edge.state, style="yellow" if edge.state == "BUSY" else "dim"),
        ]


def output_of(edge: OverlayFigures) -> float:
    """Its output utilisation; 0 before it was measured."""
    return edge.metrics.output if edge.metrics else 0.0


def highest_output(edges: Sequence[OverlayFigures]) -> float:
    """That of the edge that has most to do for what it can."""
    return max((output_of(edge) for edge in edges), default=0.0)


def spread(edges: Sequence[OverlayFigures]) -> float:
    """The standard deviation of the output utilisation divided by its mean: 0 is perfectly even."""
    outputs = [output_of(edge) for edge in edges]
    return pstdev(outputs) / fmean(outputs) if outputs and any(outputs) else 0.0


def evenness(edges: Sequence[OverlayFigures]) -> str:
    """How evenly the edges are loaded, in one line."""
    if not highest_output(edges):
        return "nothing delivered yet"
    return f"O_r up to {highest_output(edges):.2f}, cov {spread(edges):.2f}"
