"""How the demo looks: one line per notification, a line now and then on how it goes, tables at both ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin.demo.cast import Part
from tocsin.demo.tally import Tally
from tocsin.model.messages import Outcome

_COLOURS: Final = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
_LONGEST_TITLE: Final = 60

Row = Mapping[str, Any]


class Screen:
    """Prints to a console. ``parts`` are those whose notifications it will show."""

    def __init__(self, console: Console, parts: Sequence[Part]) -> None:
        self._console, self._parts = console, parts
        channels = dict.fromkeys(part.channel for part in parts)
        self._colours = {channel: _COLOURS[n % len(_COLOURS)] for n, channel in enumerate(channels)}
        self._who = max(len(part.who) for part in parts)

    def say(self, text: str = "", style: str = "") -> None:
        """A sentence, on one line however long."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Says what takes its time, with something that moves where that can be seen, and how long it took."""
        started = time.monotonic()
        moving = self._console.is_terminal
        if not moving:
            self._console.print(f"{what} … ", end="")
        try:
            with self._console.status(f"{what} …") if moving else nullcontext():
                yield
        except BaseException:
            self.say("" if not moving else f"{what} … failed")
            raise
        took = f"{time.monotonic() - started:.0f} s"
        self.say(f"{what} … {took}" if moving else took)

    def outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """What applying the application did: a line for each kind of thing."""
        kinds = groupby(outcomes, key=lambda o: (o.statement.partition(" ")[0], o.action))
        table = _table()
        for (kind, action), group in kinds:
            names = [outcome.statement.partition(" ")[2] for outcome in group]
            table.add_row(Text(f"{_count(len(names), kind)} {action}"), Text(", ".join(names), style="dim"))
        self._console.print(table)

    def parts(self, tally: Tally) -> None:
        """Who wants what."""
        table = _table("who", "subscribes to", "runs every")
        for part in self._parts:
            table.add_row(part.who, self._subscription(part), f"{tally.channels[part.channel].period:g} s")
        self._console.print(table)

    def notification(self, part: Part, rows: Sequence[Row]) -> None:
        """What an execution found for a subscription: how many reports, and the gravest of them."""
        gravest = max(rows, key=lambda row: row["severity"] or 0)
        line = Text.assemble(
            (f"{time.strftime('%H:%M:%S')}  ", "dim"),
            (f"{part.who:<{self._who}}  ", "bold"),
            f"{len(rows):>3} new  ",
            self._subscription(part),
            "  ",
            described(gravest),
        )
        self._console.print(line, soft_wrap=True)

    def progress(self, second: int, tally: Tally) -> None:
        """How it goes."""
        seconds, channel = tally.slowest
        executions = (
            f"{_count(tally.executions, 'execution')}, the slowest {seconds:.1f} s" if channel else "no execution yet"
        )
        waiting = f"{_kilo(tally.waiting_bytes)} kB wait to be stored" if tally.waiting_bytes else "all stored"
        told = _count(tally.total().notifications, "notification")
        self.say(f"── {second} s: {_published(tally)}, {waiting}; {executions}; {told}", style="dim")
        for problem in tally.problems:
            self.say(f"── trouble: {problem}", style="yellow")

    def summary(self, second: int, tally: Tally, held: Mapping[int, Part]) -> None:
        """What happened, by channel and by subscription."""
        self.say()
        self.say(f"In {second} s: {_published(tally)}; {_stored(tally)}.", style="bold")
        self.say()
        self._console.print(self._by_channel(tally, held))
        self.say()
        self._console.print(self._by_subscription(tally, held))

    def _by_channel(self, tally: Tally, held: Mapping[int, Part]) -> Table:
        table = _table("channel", "runs", "mean s", "notified", "reports", "kB")
        for name, colour in self._colours.items():
            channel = tally.channels[name]
            found = tally.total(be for be, part in held.items() if part.channel == name)
            mean = f"{sum(channel.seconds) / len(channel.seconds):.2f}" if channel.seconds else ""
            counts = (str(channel.executions), mean, str(found.notifications), str(found.reports), _kilo(found.bytes))
            table.add_row(Text(name, style=colour), *counts)
        return table

    def _by_subscription(self, tally: Tally, held: Mapping[int, Part]) -> Table:
        table = _table("who", "subscription", "notified", "λ, bytes/s")
        for be, part in held.items():
            told = str(tally.total([be]).notifications)
            table.add_row(part.who, self._subscription(part), told, f"{tally.rates.get(be, 0.0):.0f}")
        return table

    def _subscription(self, part: Part) -> Text:
        return Text(part.subscription, style=self._colours[part.channel])


def described(row: Row) -> str:
    """A report in a few words: what it is, how far away, which shelters are near."""
    words = str(row["message"] or "").partition(":")[0][:_LONGEST_TITLE] or f"report {row['id']}"
    if row.get("distance") is not None:
        words += f", {row['distance']} m away"
    if "shelters" in row:
        words += f"; {_sheltered(row['shelters'] or [])}"
    return words


def _sheltered(shelters: Sequence[Row]) -> str:
    if not shelters:
        return "no shelter near it"
    nearest = f"shelter {shelters[0]['name']} {shelters[0]['distance']} m from it"
    return f"{nearest} and {len(shelters) - 1} more" if len(shelters) > 1 else nearest


def _published(tally: Tally) -> str:
    published = " and ".join(f"{count:,} {feed}" for feed, count in sorted(tally.published.items(), reverse=True))
    return f"{published or 'nothing'} published"


def _stored(tally: Tally) -> str:
    waiting = f"all on disk, {_kilo(tally.waiting_bytes)} kB of it not stored yet"
    stored = waiting if tally.waiting_bytes else "all stored"
    return f"{stored}, {tally.refused:,} refused" if tally.refused else stored


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _kilo(size: int) -> str:
    return f"{size / 1000:,.1f}"


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, show_header=bool(headings))
    words = {"who", "subscribes to", "runs every", "subscription", "channel"}
    for heading in headings:
        table.add_column(heading, justify="left" if heading in words else "right", overflow="fold")
    return table
