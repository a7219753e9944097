"""``tocsin publish``: the records of a file, or of standard input, to a feed or to a head of an overlay."""

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
from tocsin.cli.connection import RemoteServer, ServerOption, TokenOption, connect, is_overlay
from tocsin.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from tocsin.cli.content import PublishedContent
    from tocsin.cli.publisher import Batch, FeedPublisher, PublishPace, PublishSummary
    from tocsin.cli.records import Format, SourceRecord
    from tocsin.schema.definitions import Dataset


def publish(
    context: typer.Context,
    feed: Annotated[str, typer.Argument(help="The feed to publish to, or the ws:// URL of an overlay's head.")],
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
    name: Annotated[
        str | None,
        typer.Option("--name", help="To a head: the publisher's name, of one program at a time; else one is made up."),
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
) -> None:
    """Publish the records of a file to a feed, or as publications to the head of an overlay.

    The status is 1 when any record is refused. A request that got no answer is sent again, which is safe where records
    have a primary key: an id seen before is stored once.
    """
    from tocsin.cli.publisher import PublishPace, PublishSummary, batches

    settings, summary = invocation(context).settings, PublishSummary()
    pace, most = PublishPace(rate) if rate else None, _per_request(batch, rate)
    if name and not is_overlay(feed):
        raise InvalidError("--name is for publishing to a head of an overlay; a feed knows you by your token")
    try:
        with _open(file) as stream, _bar(file) as bar:
            form = _format(file, stream, csv)
            if is_overlay(feed):
                sending = _advance(batches(_records(stream, form, None), most), bar, stream, summary)
                _to_head(feed, name or "", patience, pace, summary).run(sending, token, settings.tls.ca)
            else:
                with connect(settings, server, token) as data:
                    records = _records(stream, form, _dataset(data, feed) if form == "csv" else None)
                    sending = _advance(batches(records, most), bar, stream, summary)
                    _to_feed(_feed_publisher(data, feed, form, patience), pace, sending, summary)
    finally:
        _report(summary, file)
    if summary.refused:
        raise typer.Exit(1)


def _format(file: Path, stream: io.BufferedReader, csv: bool) -> Format:
    from tocsin.cli.records import ENDINGS, detect_format

    return "csv" if csv else ENDINGS.get(file.suffix.lower()) or detect_format(stream)


def _to_head(
    head: str, name: str, patience: float, pace: PublishPace | None, summary: PublishSummary
) -> PublishedContent:
    from tocsin.cli.content import PublishedContent

    return PublishedContent(head, name, patience, pace, summary)


def _feed_publisher(data: RemoteServer, feed: str, form: Format, patience: float) -> FeedPublisher:
    from tocsin.cli.publisher import FeedPublisher
    from tocsin.cli.waiting import Reasons

    return FeedPublisher(data, feed, joined=form == "json", patience=patience, waiting=Reasons().say)


def _advance(
    sending: Iterator[Batch], bar: _Bar, stream: io.BufferedReader, summary: PublishSummary
) -> Iterator[Batch]:
    """The batches; when the next is asked for, what became of the one before is shown."""
    for batch in sending:
        yield batch
        bar.advance(stream, summary)


def _to_feed(
    publisher: FeedPublisher, pace: PublishPace | None, sending: Iterator[Batch], summary: PublishSummary
) -> None:
    for batch in sending:
        _send(publisher, pace, batch, summary)


def _per_request(batch: int, rate: float | None) -> int:
    """At a low rate, requests small enough for ten a second: the records come evenly, not in bursts."""
    return batch if rate is None else max(1, min(batch, int(rate / 10)))


def _send(publisher: FeedPublisher, pace: PublishPace | None, records: Batch, summary: PublishSummary) -> None:
    if pace:
        time.sleep(pace.wait(time.monotonic()))
    summary.count(records, publisher.send(records))
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


def _records(stream: io.BufferedReader, form: Format, dataset: Dataset | None) -> Iterator[SourceRecord]:
    """The records; ``dataset`` says of which types those of CSV are, which else are what they look like."""
    from tocsin.cli.records import lines, rows, values

    match form:
        case "csv":
            return rows(stream, dataset)
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

    def advance(self, stream: io.BufferedReader, summary: PublishSummary) -> None:
        """Shows how far the file is read, and what became of its records."""
        completed = 0 if self._length is None else stream.tell()
        refused = f", {summary.refused:,} refused" if summary.refused else ""
        self._progress.update(self._task, completed=completed, accepted=summary.accepted, refused=refused)


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


def _report(summary: PublishSummary, file: Path) -> None:
    for line, reason in summary.reasons:
        messages.print(Text(f"{file}:{line}: {reason}"), soft_wrap=True)
    if summary.refused > len(summary.reasons):
        messages.print(f"… and {summary.refused - len(summary.reasons)} more refused")
    output.print(f"{summary.accepted} accepted, {summary.refused} refused")
