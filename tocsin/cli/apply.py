"""``tocsin apply``: an application file to a running data cluster, with the files it loads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from tocsin.cli import invocation, messages, output
from tocsin.cli.connection import RefusedStatementError, RemoteError, RemoteServer, ServerOption, TokenOption, connect
from tocsin.cli.pointing import point
from tocsin.cli.show import STATEMENT, facts, rows
from tocsin.errors import InvalidError, NotFoundError, StatementError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.cli.parts import Part
    from tocsin.data.language.forms import LoadDataset
    from tocsin.model.messages import StatementOutcome
    from tocsin.schema.definitions import Dataset

_MEDIA: Final = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
}
_CHECKING: Final = "has Spark check the statements, which takes longest the first time"
_STYLES: Final = {"created": "green", "replaced": "yellow", "dropped": "yellow", "changed": "red", "loaded": "green"}


def apply(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The application file; - for standard input.")],
    server: ServerOption = None,
    token: TokenOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")] = False,
) -> None:
    """Apply an application file: create what is new, say what differs, load the files it names.

    All of it is checked before the first statement is carried out: a file with a mistake changes nothing. The status is
    1 when a statement is refused, or a definition differs from the existing one without OR REPLACE.
    """
    text = read(file)
    outcomes: list[StatementOutcome] = []
    refused: StatementError | None = None
    try:
        with connect(invocation(context).settings, server, token) as data, data.doing(_CHECKING):
            _apply(text, data, file.parent, outcomes, dry_run)
    except StatementError as error:
        refused = error
    finally:
        _print(outcomes, "what would happen" if dry_run else "what happened")
    if refused:
        messages.print(point(refused, text, str(file)), soft_wrap=True)
        messages.print(_describe_rest(outcomes), soft_wrap=True)
        raise typer.Exit(1)
    if any(outcome.action == "changed" for outcome in outcomes):
        differ = "some definitions differ and were left as they are; say CREATE OR REPLACE to replace them"
        messages.print(differ, soft_wrap=True)
        raise typer.Exit(1)


def _apply(text: str, data: RemoteServer, directory: Path, outcomes: list[StatementOutcome], dry_run: bool) -> None:
    """Adds what each statement did to ``outcomes``, also when a later one fails."""
    from tocsin.cli.parts import datasets, parts

    pieces = list(parts(text))
    if not pieces:
        messages.print("there is no statement in it")
    would = _check(text, data) if pieces else []
    if loads := [piece for piece in pieces if not isinstance(piece, str)]:
        _check_files(loads, directory, datasets(data, text, would))
    if dry_run:
        outcomes += would
        return
    try:
        for piece in pieces:
            outcomes += _carry_out(piece, data, directory)
    except (RefusedStatementError, RemoteError) as error:
        outcomes += error.problem.outcomes or []
        raise


def _describe_rest(outcomes: list[StatementOutcome]) -> str:
    if any(outcome.action not in ("shown", "unchanged", "changed") for outcome in outcomes):
        return "the statements above were carried out, the others were not; correct the file and apply it again"
    return "nothing was changed"


def read(file: Path) -> str:
    """The text of an application file, or of standard input for ``-``."""
    try:
        return (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}") from None


def _carry_out(part: Part, data: RemoteServer, directory: Path) -> list[StatementOutcome]:
    import msgspec

    from tocsin.model.messages import Applied

    if isinstance(part, str):
        return msgspec.json.decode(data.post("/apply", part.encode(), "text/sql"), type=Applied).outcomes
    return [_load(part, data, directory)]


def _check(text: str, data: RemoteServer) -> list[StatementOutcome]:
    """What the whole file would do. Its parts go one by one, and the first must not be done if the last cannot be."""
    import msgspec

    from tocsin.model.messages import Applied

    return msgspec.json.decode(data.post("/check", text.encode(), "text/sql"), type=Applied).outcomes


def _check_files(loads: list[LoadDataset], directory: Path, datasets: Mapping[str, Dataset]) -> None:
    """Reads the files as the server will."""
    from tocsin.schema.loading import load_file

    for statement in loads:
        path = directory / statement.path
        if path.suffix.lower() not in _MEDIA:
            raise statement.error(f"cannot load '{path}': the name must end in {', '.join(_MEDIA)}")
        try:
            path.open("rb").close()
            load_file(datasets[statement.dataset.casefold()], path)
        except OSError as error:
            raise statement.error(f"'{path}' cannot be read: {error.strerror}") from None
        except InvalidError as error:
            raise statement.error(str(error)) from None


def _load(statement: LoadDataset, data: RemoteServer, directory: Path) -> StatementOutcome:
    """Sends the file along: the server may run elsewhere, and reads no paths."""
    import msgspec

    from tocsin.model.messages import Loaded, StatementOutcome

    path = directory / statement.path
    try:
        with path.open("rb") as file:
            answer = data.post(f"/datasets/{statement.dataset}/load", file, _MEDIA[path.suffix.lower()])
    except OSError as error:
        raise statement.error(f"'{path}' cannot be read: {error.strerror}") from None
    except RemoteError as error:
        raise statement.error(str(error)) from None
    loaded = msgspec.json.decode(answer, type=Loaded)
    title = f"dataset {statement.dataset}"
    if loaded.unchanged:
        return StatementOutcome(title, "unchanged", f"holds the {loaded.rows:,} rows of {statement.path} already")
    return StatementOutcome(title, "loaded", f"{loaded.rows:,} rows from {statement.path}")


def _print(outcomes: list[StatementOutcome], heading: str) -> None:
    if not outcomes:
        return
    table = Table("statement", heading, "", box=None, header_style="bold", pad_edge=False)
    for outcome in outcomes:
        style = _STYLES.get(outcome.action, "dim")
        table.add_row(Text(outcome.statement), Text(outcome.action, style=style), Text(outcome.detail))
    output.print(table)
    for outcome in outcomes:
        if outcome.rows:
            shown = rows(outcome.rows) if outcome.statement.startswith("show ") else facts(outcome.rows[0])
            output.print(Text(f"\n{outcome.statement}", style="bold"), shown, sep="\n")
        if len(outcome.rows) == 1 and STATEMENT in outcome.rows[0]:
            output.print(Text(outcome.rows[0][STATEMENT]), soft_wrap=True)
