"""Calls that define things: statements, one by one or a file of them, and the rows of reference datasets."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import Response

from tocsin.data.language.forms import CreateChannel, CreateDataset, CreateFeed, LoadDataset, Statement, Thing
from tocsin.data.language.parser import parse
from tocsin.data.server.call import Call, Handler
from tocsin.data.server.uploads import upload
from tocsin.errors import ConflictError, InvalidError, NotFoundError
from tocsin.http import body
from tocsin.http.answers import answer
from tocsin.http.failures import failure
from tocsin.log import get_logger
from tocsin.model import messages, names
from tocsin.model.quoting import shorten

log = get_logger(__name__)

MOST_STATEMENT_BYTES: Final = 1 << 20
MOST_LOAD_BYTES: Final = 1 << 30
ENDINGS: Final = {
    "text/csv": ".csv",
    "application/json": ".json",
    "application/x-ndjson": ".ndjson",
    "application/vnd.apache.parquet": ".parquet",
}
_CREATES: Final = {Thing.DATASET: CreateDataset, Thing.FEED: CreateFeed, Thing.CHANNEL: CreateChannel}


async def apply(call: Call) -> Response:
    """Carries out the statements of an application file; if one fails, says what those before it did."""
    text = await _text(call)
    await _parse(text)
    outcomes: list[messages.StatementOutcome] = []

    def told(outcome: messages.StatementOutcome) -> None:
        outcomes.append(outcome)
        _report(call, outcome)

    try:
        return answer(messages.Applied(await call.cluster.apply(text, None, told)))
    except Exception as error:
        if not outcomes:
            raise
        return failure(error, outcomes)


async def check(call: Call) -> Response:
    """Says what the statements of an application file would do."""
    text = await _text(call)
    await _parse_loads(text)
    return answer(messages.Applied(await call.cluster.check(text)))


def create(thing: Thing) -> Handler:
    """The call that carries out one CREATE statement for a ``thing``."""

    async def carry_out(call: Call) -> Response:
        text = await _text(call)
        _check_creates(thing, await _parse(text))
        [outcome] = await call.cluster.apply(text, None)
        if outcome.action == "changed":
            raise ConflictError(
                f"{outcome.statement} exists with another definition; say CREATE OR REPLACE to replace it"
                + (f" ({outcome.detail})" if outcome.detail else "")
            )
        _report(call, outcome)
        return answer(outcome, 201 if outcome.action == "created" else 200)

    return carry_out


def drop(thing: Thing) -> Handler:
    """The call that drops a ``thing`` by its name."""

    async def carry_out(call: Call) -> Response:
        name = _name(call, thing)
        [outcome] = await call.cluster.apply(f"DROP {thing.upper()} IF EXISTS {name}", None)
        if outcome.action != "dropped":
            raise NotFoundError(f"there is no {thing} {name}; GET /{thing}s lists those there are")
        _report(call, outcome)
        return answer(outcome)

    return carry_out


async def load(call: Call) -> Response:
    """Fills a dataset with the rows of the file that is the body."""
    name = _name(call, Thing.DATASET)
    ending = ENDINGS.get(body.content_type(call.request))
    if ending is None:
        raise InvalidError(f"the Content-Type must say what the file is: {', '.join(ENDINGS)}")
    with upload(call.settings.data.directory, f"{name}{ending}") as path:
        await body.save(call.request, path, MOST_LOAD_BYTES)
        loaded = await call.cluster.load(name, path)
    by = call.caller and call.caller.name
    log.info("dataset loaded", dataset=name, rows=loaded.rows, unchanged=loaded.unchanged, by=by)
    return answer(loaded)


async def _text(call: Call) -> str:
    """The statements: as they are, or as the only member of a JSON object."""
    received = await call.body(MOST_STATEMENT_BYTES)
    if received.lstrip().startswith(b"{"):
        return body.decode(received, messages.Statement).statement
    return body.text(received)


async def _parse(text: str) -> list[Statement]:
    """The statements, none of which may read files of the machine the server runs on."""
    statements = await _parse_loads(text)
    for statement in statements:
        if isinstance(statement, LoadDataset):
            raise statement.error(
                f"the server does not read files by their path; 'tocsin apply' sends them along, "
                f"or send the file itself to POST /datasets/{statement.dataset}/load"
            )
    return statements


async def _parse_loads(text: str) -> list[Statement]:
    """The statements, LOAD among them."""
    statements = await asyncio.to_thread(parse, text)
    if not statements:
        raise InvalidError("there is no statement in the body; send CREATE ..., DROP ... or SHOW ...")
    return statements


def _check_creates(thing: Thing, statements: list[Statement]) -> None:
    for statement in statements:
        if not isinstance(statement, _CREATES[thing]):
            raise statement.error(f"this call takes CREATE {thing.upper()}; POST /apply takes any statement")
    if len(statements) > 1:
        raise statements[1].error("this call takes one statement; POST /apply takes any number")


def _name(call: Call, thing: Thing) -> str:
    if fault := names.fault(call.name):
        raise InvalidError(f"{shorten(call.name)}, the name of the {thing}, {fault}")
    return call.name


def _report(call: Call, outcome: messages.StatementOutcome) -> None:
    if outcome.action not in ("shown", "unchanged"):
        by = call.caller and call.caller.name
        log.info("statement applied", statement=outcome.statement, action=outcome.action, by=by)
