"""Subscribing by content and publishing to a head, from the command line."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer
from rich.text import Text

from tocsin.cli import messages, output
from tocsin.cli.pointing import point
from tocsin.errors import FilterError, InvalidError, StorageError, TocsinError, UnauthorizedError, UnavailableError

if TYPE_CHECKING:
    from tocsin.cli.publisher import PublishPace, PublishSummary
    from tocsin.cli.records import SourceRecord
    from tocsin.overlay.client import ContentSubscription, Gap, HeadCursor, Note, OverlayConnection

_KEEP_SECONDS: Final = 1.0
_HINT: Final = "give the overlay's clients' token with --token or TOCSIN_TOKEN"


class CursorFile:
    """How far a subscription is, in a file: written now and then, and in the end."""

    def __init__(self, path: Path) -> None:
        self._path, self._kept = path, -_KEEP_SECONDS

    def read(self) -> dict[str, HeadCursor]:
        """What the file says; nothing, if there is none yet."""
        from tocsin.overlay.client import HeadCursor

        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, HeadCursor])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise InvalidError(f"{self._path} has no cursors that 'tocsin subscribe --cursors' wrote") from None

    def keep(self, cursors: Mapping[str, HeadCursor]) -> None:
        """Writes them, unless that was done a moment ago."""
        if time.monotonic() - self._kept >= _KEEP_SECONDS:
            self.write(cursors)

    def write(self, cursors: Mapping[str, HeadCursor]) -> None:
        """Writes them, so that the file has either the old ones or these."""
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.write_bytes(msgspec.json.encode(cursors))
            os.replace(new, self._path)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from None
        self._kept = time.monotonic()


@dataclass(frozen=True)
class PrintedContent:
    """What is subscribed to at which edges, and how it is printed."""

    where: str
    edges: list[str]
    json: bool
    count: int | None
    cursors: CursorFile | None

    def run(self, token: str | None, ca: str) -> None:
        """Prints until enough was printed, or Ctrl-C; a filter that cannot be read is shown with the place."""
        try:
            with suppress(KeyboardInterrupt):
                asyncio.run(self._subscribe(token, ca))
        except FilterError as error:
            messages.print(point(error, self.where, "--where"), soft_wrap=True)
            raise typer.Exit(1) from None

    async def _subscribe(self, token: str | None, ca: str) -> None:
        from tocsin.client import connect

        since = self.cursors.read() if self.cursors else {}
        async with connect(self.edges, client_token=token or "", ca=ca) as me:
            try:
                subscription = await me.subscribe(self.where, cursors=since, on_gap=self._print_gap)
            except UnauthorizedError as error:
                raise UnauthorizedError(f"{error}; {_HINT}") from None
            said = "subscribed; what matches is printed as it comes; Ctrl-C ends"
            messages.print(Text(said), style="dim", soft_wrap=True)
            try:
                await self._print(subscription)
            finally:
                if self.cursors:
                    self.cursors.write(subscription.cursors)

    async def _print(self, subscription: ContentSubscription) -> None:
        printed = 0
        async for note in subscription:
            output.print(Text(_line(note) if self.json else _readable(note)), soft_wrap=True)
            printed += 1
            if printed == self.count:
                subscription.done()
                return
            if self.cursors:
                self.cursors.keep(subscription.cursors)

    def _print_gap(self, gap: Gap) -> None:
        output.print(Text(_gap_line(gap) if self.json else _readable_gap(gap)), soft_wrap=True)


@dataclass(frozen=True)
class PublishedContent:
    """Records of a file on their way to a head."""

    head: str
    name: str
    patience: float
    pace: PublishPace | None
    summary: PublishSummary

    def run(self, batches: Iterable[list[SourceRecord]], token: str | None, ca: str) -> None:
        """Publishes them all, each stored before the next batch."""
        asyncio.run(self._publish(batches, token, ca))

    async def _publish(self, batches: Iterable[list[SourceRecord]], token: str | None, ca: str) -> None:
        from tocsin.client import connect

        async with connect(self.head, name=self.name, client_token=token or "", ca=ca) as me:
            for batch in batches:
                if self.pace:
                    await asyncio.sleep(self.pace.wait(time.monotonic()))
                await self._send(me, batch)
                if self.pace:
                    self.pace.sent(len(batch))

    async def _send(self, me: OverlayConnection, batch: list[SourceRecord]) -> None:
        from tocsin.model.messages import Published, Refusal

        publishing = asyncio.gather(*(_publish(me, record) for record in batch))
        try:
            async with asyncio.timeout(self.patience):
                reasons = await publishing
        except TimeoutError:
            raise UnavailableError(
                f"{self.head} has not stored for {self.patience:g} s what it was sent; --patience waits longer"
            ) from None
        except UnauthorizedError as error:
            raise UnauthorizedError(f"{error}; {_HINT}") from None
        refused = [Refusal(index, reason) for index, reason in enumerate(reasons) if reason]
        self.summary.count(batch, Published(len(batch) - len(refused), refused))


async def _publish(me: OverlayConnection, record: SourceRecord) -> str:
    """Publishes it; why it cannot be published, if that is so."""
    from tocsin.content.values import check_publication

    try:
        content = check_publication(msgspec.json.decode(record.text, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"not a JSON object: {error}"
    except TocsinError as error:
        return str(error)
    await me.publish(content)
    return ""


def _line(note: Note) -> str:
    known = {"head": note.head, "offset": note.offset, "publisher": note.publisher, "sequence": note.sequence}
    return msgspec.json.encode({**known, "content": note.content}).decode()


def _gap_line(gap: Gap) -> str:
    return msgspec.json.encode({"head": gap.head, "gap": {"first": gap.first, "last": gap.last}}).decode()


def _readable(note: Note) -> str:
    content = ", ".join(f"{name}: {_text(value)}" for name, value in note.content.items())
    return f"{note.publisher} #{note.sequence}  {content}"


def _readable_gap(gap: Gap) -> str:
    if gap.last is None:
        return f"what was published to {gap.head} from {gap.first} on is lost: it has another log than before"
    return f"what was published to {gap.head} from {gap.first} to {gap.last} is not kept any more"


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
