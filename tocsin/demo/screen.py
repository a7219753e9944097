"""How the demo looks: a sample of notifications, what the coordinator does and why, and the brokers at a glance."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin.coordinator.answers import NetworkStatus, Proposal
from tocsin.crowd.messages import CrowdFigures, Gathered, Heard
from tocsin.demo.board import Board, evenness
from tocsin.demo.stage import StageScreen, count
from tocsin.model.messages import StatementOutcome

_LONGEST_TITLE: Final = 60
_FLOWS: Final = 3

Row = Mapping[str, Any]

_EXPLANATION: Final = (
    "",
    "Everyone is on the nearest broker, so the one in the centre has far more to do than the others.",
    "A broker's load is what comes in, once for each different subscription, and what goes out, once for each person,",
    "reckoned from what each subscription brings; 'in' and 'out' are measured, and follow a little later.",
    "cov is the loads' standard deviation divided by their mean: 0 is perfectly even.",
)


class DemoScreen(StageScreen):
    """The emergency application's. What people hear is shown while the stage is entered: before, it is what was found
    in an earlier run.
    """

    def __init__(self, console: Console, board: Board) -> None:
        super().__init__(console)
        self._board = board

    def introduce(self, people: int, brokers: int) -> None:
        """What is to be seen."""
        self.say("Tocsin: subscribe to queries over big data, and be told what is new for you.", style="bold")
        self.say(
            f"A city in which {people:,} people move about and emergencies are reported. Spark looks for what concerns "
            f"whom; {count(brokers, 'broker')} deliver it, and a coordinator keeps them evenly loaded.\n"
        )

    def explain(self, held: int, seconds: int | None) -> None:
        """What the figures mean, and what happens when."""
        until = f"for {seconds} seconds" if seconds else "until you press Ctrl-C"
        for line in _EXPLANATION:
            self.say(line)
        self.say(f"Balancing is held off for the first {held} s, so that you see what it does. Running {until}.")
        self.say("Channels run every 10 to 30 s, so the first finds take a moment.\n")

    def outcomes(self, outcomes: Sequence[StatementOutcome]) -> None:
        """What applying the application did: a line for each kind of thing."""
        table = Table(box=None, pad_edge=False, show_header=False)
        for (kind, action), group in groupby(outcomes, key=lambda o: (o.statement.partition(" ")[0], o.action)):
            names = [outcome.statement.partition(" ")[2] for outcome in group]
            table.add_row(Text(f"{count(len(names), kind)} {action}"), Text(", ".join(names), style="dim"))
        self.console.print(table)

    def gathered(self, gathered: Gathered, processes: int) -> None:
        """Who is there."""
        held, distinct = len(gathered.subscriptions), len(set(gathered.subscriptions))
        self.say(
            f"{gathered.people:,} people hold {held:,} subscriptions, of which {distinct:,} differ: for each of those "
            f"the data cluster looks once. {count(processes, 'process plays', 'processes play')} the people."
        )

    def heard(self, heard: Heard) -> None:
        """A notification that somebody got: how many reports, and the gravest of them."""
        self.happen(
            Text.assemble(
                (f"{time.strftime('%H:%M:%S')}  ", "dim"),
                (f"{heard.who:<5}", "bold"),
                f"{heard.rows:>3} new  ",
                (subscription(heard), "cyan"),
                "  ",
                describe(heard.gravest),
            )
        )

    def look(self, second: int, status: NetworkStatus, figures: CrowdFigures, remark: str) -> None:
        """How it stands, once in a second."""
        told = count(figures.notifications, "notification")
        text = f"{evenness(status)}; {told}; {remark}"
        self.stand(second, text, self._board.table(status), bool(status.mean))

    def proposal(self, proposal: Proposal) -> None:
        """What the coordinator would do now, and why."""
        self.say(f"\nThe coordinator would now {_does(proposal)}, since {proposal.reason}:", style="bold yellow")
        for sentence in proposal.sentences:
            self.say(f"   {sentence}")
        self.say("Balancing is on from here: the network carries this out by itself.\n", style="bold yellow")

    def decision(self, decision: str) -> None:
        """What the coordinator has decided."""
        self.say(f"── the coordinator decides to {decision.replace(': ', ', since ', 1)}", style="yellow")

    def shares(self, shares: Sequence[str]) -> None:
        """Which nodes process what is published."""
        for sentence in shares:
            self.say(f"── {sentence}", style="cyan")

    def moves(self, moves: Counter[tuple[str, str]]) -> None:
        """Who has gone over to another broker."""
        gone = ", ".join(f"{number} from {before} to {after}" for (before, after), number in moves.most_common(_FLOWS))
        more = ", …" if len(moves) > _FLOWS else ""
        self.say(f"── {count(moves.total(), 'person', 'people')} moved without a gap: {gone}{more}", style="green")


def subscription(heard: Heard) -> str:
    """The channel with the values of its parameters."""
    values = (f"{value:g}" if isinstance(value, float) else str(value) for value in heard.parameters.values())
    return f"{heard.channel}({', '.join(values)})"


def describe(row: Row) -> str:
    """A report in a few words: what it is, how far away, which shelters are near."""
    words = str(row["message"] or "").partition(":")[0][:_LONGEST_TITLE] or f"report {row['id']}"
    if row.get("distance") is not None:
        words += f", {row['distance']} m away"
    if "shelters" in row:
        words += f"; {_describe_shelters(row['shelters'] or [])}"
    return words


def _describe_shelters(shelters: Sequence[Row]) -> str:
    if not shelters:
        return "no shelter near it"
    nearest = f"shelter {shelters[0]['name']} {shelters[0]['distance']} m from it"
    return f"{nearest} and {len(shelters) - 1} more" if len(shelters) > 1 else nearest


def _does(proposal: Proposal) -> str:
    return f"{proposal.stage} ({count(proposal.moves, 'move')})" if proposal.moves else f"stay {proposal.stage}"
