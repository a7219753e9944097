"""``tocsin publish``: the records of a file, or of standard input, to a feed."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.cli.connection import RemoteServer, ServerOption, TokenOption, connect
from tocsin.errors import NotFoundError

if TYPE_CHECKING:
    from tocsin.cli.publisher import FeedPublisher, PublishPace, PublishTally
    from tocsin.cli.records import Format, SourceRecord
    from tocsin.schema.definitions import Dataset


def publish(
    context: typer.Context,
    feed: Annotated[str, typer.Argument(help="The feed to publish to.")],
    file: Annotated[Path, typer.Argument(help="NDJSON, a JSON array or CSV; - for standard input.")],
    batch: Annotated[int, typer.Option("--batch", min=1, max=100_000, help="Records per request.")] = 1000,
    rate: Annotated[float | None, typer.Option("--rate", min=0.001, help="Records per second; else no limit.")] = None,
    patience: Annotated[
        float,
        typer.Option(
            "--patience", min=0, help="Seconds to go on trying while the server is away, busy or has no room."
        ),
    ] = 60.0,
    csv: Annotated[bool, typer.Option("--csv", help="Read CSV, whatever the file is called.")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
) -> None:
    """Publish the records of a file.

    The status is 1 when any record is refused. A request that got no answer is sent again, which is safe where records
    have a primary key: an id seen before is stored once.
    """
    from tocsin.cli.publisher import FeedPublisher, PublishPace, PublishTally, batches
    from tocsin.cli.records import ENDINGS, detect_format
    from tocsin.cli.waiting import Reasons

    tally = PublishTally()
    try:
        with connect(invocation(context).settings, server, token) as data, _open(file) as stream, _bar(file) as bar:
            form = "csv" if csv else ENDINGS.get(file.suffix.lower()) or detect_format(stream)
            waiting = Reasons().say
            publisher = FeedPublisher(data, feed, joined=form == "json", patience=patience, waiting=waiting)
            pace = PublishPace(rate) if rate else None
            for records in batches(_records(stream, form, data, feed), _per_request(batch, rate)):
                _send(publisher, pace, records, tally)
                bar.advance(stream, tally)
    finally:
        _report(tally, file)
    if tally.refused:
        raise typer.Exit(1)


def _per_request(batch: int, rate: float | None) -> int:
    """At a low rate, requests small enough for ten a second: the records come evenly, not in bursts."""
    return batch if rate is None else max(1, min(batch, int(rate / 10)))


def _send(publisher: FeedPublisher, pace: PublishPace | None, records: list[SourceRecord], tally: PublishTally) -> None:
    if pace:
        time.sleep(pace.wait(time.monotonic()))
    tally.count(records, publisher.send(records))
    if pace:
        pace.sent(len(records))


@contextmanager
def _open(file: Path) -> Iterator[io.BufferedReader]:
    if str(file) == "-":
        assert isinstance(sys.stdin.buffer, io.BufferedReader)
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}") from None
    with stream:
        yield stream


def _records(stream: io.BufferedReader, form: Format, data: RemoteServer, feed: str) -> Iterator[SourceRecord]:
    from tocsin.cli.records import lines, rows, values

    match form:
        case "csv":
            return rows(stream, _dataset(data, feed))
        case "json":
            return values(stream)
        case "ndjson":
            return lines(stream)


def _dataset(data: RemoteServer, feed: str) -> Dataset:
    """The dataset a feed fills: the types of its columns tell how to write what CSV has only as text."""
    import msgspec

    from tocsin.data.language.forms import CreateDataset
    from tocsin.data.language.parser import parse
    from tocsin.model import names
    from tocsin.model.messages import Listed

    feeds = {item["name"]: item["dataset"] for item in msgspec.json.decode(data.get("/feeds"), type=Listed).items}
    found = next((name for name in feeds if name.casefold() == feed.casefold()), None)
    if found is None:
        raise NotFoundError(f"there is no feed {feed}{names.suggestion(feed, feeds)}; 'tocsin show feeds' lists them")
    datasets = msgspec.json.decode(data.get("/datasets"), type=Listed).items
    [text] = [item["statement"] for item in datasets if item["name"] == feeds[found]]
    [statement] = parse(text)
    assert isinstance(statement, CreateDataset)
    return statement.definition


class _Bar:
    """The progress of reading a file; of standard input only the count."""

    def __init__(self, progress: Progress, length: int | None) -> None:
        self._progress, self._length = progress, length
        self._task = progress.add_task("", total=length, accepted=0, refused="")

    def advance(self, stream: io.BufferedReader, tally: PublishTally) -> None:
        """Shows how far the file is read, and what became of its records."""
        completed = 0 if self._length is None else stream.tell()
        refused = f", {tally.refused:,} refused" if tally.refused else ""
        self._progress.update(self._task, completed=completed, accepted=tally.accepted, refused=refused)


@contextmanager
def _bar(file: Path) -> Iterator[_Bar]:
    columns = (
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[accepted]:,} accepted{task.fields[refused]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        yield _Bar(progress, file.stat().st_size if file.is_file() else None)


def _report(tally: PublishTally, file: Path) -> None:
    for line, reason in tally.reasons:
        messages.print(Text(f"{file}:{line}: {reason}"), soft_wrap=True)
    if tally.refused > len(tally.reasons):
        messages.print(f"… and {tally.refused - len(tally.reasons)} more refused")
    output.print(f"{tally.accepted} accepted, {tally.refused} refused")
