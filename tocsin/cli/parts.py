"""An application file as the parts that are sent one after the other: statements, and files to load between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from tocsin.cli.connection import RemoteServer
from tocsin.data.language.forms import CreateDataset, LoadDataset, Statement
from tocsin.data.language.parser import parse
from tocsin.model.messages import Listed, StatementOutcome
from tocsin.schema.definitions import Dataset

Part = str | LoadDataset
_NOT_NEWLINE = re.compile(r"[^\n]")


def parts(text: str) -> Iterator[Part]:
    """The parts in order. All but its own statements is blank in each, so that places are those of the whole file.

    Raises StatementError, before the first part, when any statement of the file cannot be read.
    """
    statements = parse(text)
    return _parts(text, statements)


def datasets(data: RemoteServer, text: str, outcomes: Sequence[StatementOutcome]) -> dict[str, Dataset]:
    """The datasets as they will be, by their names in lower case: those there are, and those the file makes."""
    known = msgspec.json.decode(data.get("/datasets"), type=Listed).items
    there = [statement for item in known for statement in parse(item["statement"])]
    made = {outcome.statement for outcome in outcomes if outcome.action in ("created", "replaced")}
    definitions = [each.definition for each in there if isinstance(each, CreateDataset)]
    definitions += [
        each.definition
        for each in parse(text)
        if isinstance(each, CreateDataset) and f"dataset {each.definition.name}" in made
    ]
    return {definition.name.casefold(): definition for definition in definitions}


def _parts(text: str, statements: list[Statement]) -> Iterator[Part]:
    for is_load, group in groupby(statements, key=lambda statement: isinstance(statement, LoadDataset)):
        run = list(group)
        if is_load:
            yield from (statement for statement in run if isinstance(statement, LoadDataset))
        else:
            start, end = _offset(text, run[0]), _offset(text, run[-1]) + len(run[-1].text)
            yield _NOT_NEWLINE.sub(" ", text[:start]) + text[start:end]


def _offset(text: str, statement: Statement) -> int:
    before = text.split("\n")[: statement.line - 1]
    return sum(len(line) + 1 for line in before) + statement.column - 1
