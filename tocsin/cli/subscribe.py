"""``tocsin subscribe``: what a channel finds, or what matches a filter, printed as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.cli.connection import CoordinatorOption, connect_coordinator, is_overlay
from tocsin.cli.waiting import Reasons, telling
from tocsin.errors import ForbiddenError, InvalidError, TocsinError, UnauthorizedError

if TYPE_CHECKING:
    from tocsin.client.note import Gap, Note
    from tocsin.client.subscriber import Subscriber
    from tocsin.client.subscription import Subscription

_LEAVE_SECONDS: Final = 2.0
_WHAT_COMES: Final = (
    "what it finds is printed as it comes, the first time some ten seconds later than usual, since Spark warms up; "
    "Ctrl-C ends"
)
_NOT_YET: Final = (
    "not subscribed yet: the broker waits for the data cluster, which may be starting, busy or away; this waits until "
    "it answers; Ctrl-C ends"
)


def subscribe(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="CHANNEL|EDGES",
            help="The channel to subscribe to; with --where, the URLs of edges of an overlay, of which any will do.",
        ),
    ],
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="FILTER", help="At an edge: what is wanted, as \"symbol = 'YHOO' and high > 40\""
        ),
    ] = None,
    cursors: Annotated[
        Path | None,
        typer.Option(
            "--cursors", metavar="FILE", help="At an edge: go on where this file says, and write there how far it was"
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="A parameter, as JSON or plain text; may be repeated"),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="Register as this subscriber; else as a passing guest")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Skip what is found while you are away.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print each notification as a line of JSON.")] = False,
    count: Annotated[int | None, typer.Option("--count", min=1, help="End after so many notifications.")] = None,
    coordinator: CoordinatorOption = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="TOCSIN_TOKEN",
            metavar="TOKEN",
            help="The subscriber's token; with --user, the operator's that registers it; at an edge, the clients'",
        ),
    ] = None,
) -> None:
    """Subscribe to a channel, or with --where to what is published to an overlay, and print what comes until Ctrl-C.

    A subscription under a name or a token of your own stays when this ends: what is found meanwhile is printed the next
    time. A guest is gone with the command. At an edge, --cursors keeps how far it was.
    """
    import asyncio
    from contextlib import suppress

    settings = invocation(context).settings
    if where is not None or any(map(is_overlay, source)):
        of_channels = {"--param": param, "--user": user, "--live": live}
        _refuse_at_edges(source, where, [option for option, given in of_channels.items() if given])
        _print_content(source, where or "", cursors, json, count, token, settings.tls.ca)
        return
    channel, *others = source
    _refuse_at_channels(others, cursors)
    with connect_coordinator(settings, coordinator, token) as server:
        url = server.url
    reading = PrintedSubscription(channel, parameters(param or []), live, json, count)
    with suppress(KeyboardInterrupt):
        asyncio.run(_subscribe(url, user, token, reading, server.ca))


def _refuse_at_channels(others: list[str], cursors: Path | None) -> None:
    """Raises InvalidError for what makes no sense with a channel."""
    if meant := [word for word in others if "=" in word]:
        raise InvalidError(f"write --param before each of the channel's parameters: --param {meant[0]}")
    if others:
        raise InvalidError(f"one channel at a time: give {others[0]!r} to another 'tocsin subscribe'")
    if cursors:
        raise InvalidError("--cursors is for an overlay's edges; of channels the brokers keep how far you are")


def _refuse_at_edges(edges: list[str], where: str | None, of_channels: list[str]) -> None:
    """Raises InvalidError for what makes no sense with an overlay."""
    if strange := [url for url in edges if not is_overlay(url)]:
        raise InvalidError(
            f"{strange[0]} is no edge of an overlay, at which --where subscribes: write its URL, such as "
            "ws://127.0.0.1:8711"
        )
    if where is None:
        raise InvalidError("""an edge wants to know what you want: --where "symbol = 'YHOO' and high > 40\"""")
    if of_channels:
        raise InvalidError(f"{', '.join(of_channels)}: these are for channels, and this is an overlay's edge")


def _print_content(
    edges: list[str], where: str, cursors: Path | None, json: bool, count: int | None, token: str | None, ca: str
) -> None:
    from tocsin.cli.content import CursorFile, PrintedContent

    PrintedContent(where, edges, json, count, CursorFile(cursors) if cursors else None).run(token, ca)


def parameters(texts: list[str]) -> dict[str, Any]:
    """Parameters by name. A value that is JSON is that, any other is text: ``radius=500``, ``event=flood``."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidError(f"--param {text}: write NAME=VALUE, such as --param event=flood")
        if name in found:
            raise InvalidError(f"--param {name} is given twice: a subscription has one value for each parameter")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


class PrintedSubscription:
    """What is subscribed to, and how it is printed."""

    def __init__(
        self, channel: str, parameters: dict[str, Any], live: bool, json: bool, count: int | None = None
    ) -> None:
        self._channel, self._parameters, self._live = channel, parameters, live
        self._json, self._count = json, count

    async def read(self, me: Subscriber, passing: bool) -> None:
        """Prints until enough was printed; a ``passing`` guest is gone for good then."""
        with telling(lambda: _NOT_YET, Reasons()):
            subscription = await me.subscribe(
                self._channel, live=self._live, parameters=self._parameters, on_gap=self._print_gap
            )
        messages.print(Text(f"subscribed to {subscription.channel}; {_WHAT_COMES}"), style="dim", soft_wrap=True)
        try:
            await self._print(subscription)
        finally:
            if passing:
                await _give_up(me)

    async def _print(self, subscription: Subscription) -> None:
        printed = 0
        async for note in subscription:
            output.print(Text(_line(note) if self._json else _readable(note)), soft_wrap=True)
            note.done()
            printed += 1
            if printed == self._count:
                return

    def _print_gap(self, gap: Gap) -> None:
        output.print(Text(_gap_line(gap) if self._json else str(gap)), soft_wrap=True)


async def _give_up(me: Subscriber) -> None:
    """Unregisters if that can be done soon: somebody waits for the command to end, and there may be no coordinator."""
    import asyncio
    from contextlib import suppress

    with suppress(TimeoutError, TocsinError):
        async with asyncio.timeout(_LEAVE_SECONDS):
            await me.unregister()


async def _subscribe(url: str, user: str | None, token: str | None, reading: PrintedSubscription, ca: str) -> None:
    from tocsin.client import connect
    from tocsin.tasks import until_one_ends

    passing = token is None and user is None
    try:
        own = token if token and user is None else await _register(url, user, token, ca)
        me = connect(url, own, ca=ca)
        await until_one_ends(_read(me, reading, passing), _tell(me))
    except (UnauthorizedError, ForbiddenError) as error:
        raise type(error)(f"{error}; {_hint(user, token)}") from error


async def _read(me: Subscriber, reading: PrintedSubscription, passing: bool) -> None:
    async with me:
        await reading.read(me, passing)


async def _register(url: str, user: str | None, token: str | None, ca: str) -> str:
    from secrets import token_hex

    from tocsin.client import register

    name = user or f"guest-{token_hex(4)}"
    own = await register(url, name, token, ca=ca)
    how = f"; to come back as {name}: --token {own}" if user else ""
    messages.print(Text(f"registered as {name}{how}"), style="dim", soft_wrap=True)
    return own


def _hint(user: str | None, token: str | None) -> str:
    if token and user is None:
        return "an operator's token needs --user NAME, and registers that subscriber"
    if token:
        return "--user needs an operator's token; a subscriber's own token goes without --user"
    return "give your token with --token, or an operator's with --token and --user NAME"


async def _tell(me: Subscriber) -> None:
    from tocsin.client.notices import NoticeKind

    async for event in me.events():
        if event.kind is NoticeKind.GAP:
            # Printed where it belongs among the notes.
            continue
        messages.print(Text(f"{event.kind}: {event.message}"), style="dim", soft_wrap=True)


def _line(note: Note) -> str:
    import msgspec

    known = {"channel": note.channel, "execution": note.execution, "subscription": note.subscription}
    return msgspec.json.encode({**known, "recovered": note.recovered, "rows": msgspec.Raw(note.payload)}).decode()


def _gap_line(gap: Gap) -> str:
    import msgspec

    known = {"channel": gap.channel, "subscription": gap.subscription}
    return msgspec.json.encode({**known, "gap": {"first": gap.first, "last": gap.last}}).decode()


def _readable(note: Note) -> str:
    mark = ", recovered" if note.recovered else ""
    rows = [", ".join(f"{name}: {_text(value)}" for name, value in row.items()) for row in note.rows]
    return "\n".join([f"{note.channel} #{note.execution}{mark}", *(f"  {row}" for row in rows)])


def _text(value: Any) -> str:
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
