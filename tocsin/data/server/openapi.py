"""The OpenAPI 3.1 document of the calls, made from the table of operations and the structs they speak of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from tocsin import __version__
from tocsin.data.server.access import Access
from tocsin.data.server.call import Operation
from tocsin.model import control, messages

Json = dict[str, Any]
_REFERENCE: Final = "#/components/schemas/{name}"
_TEXTUAL: Final = ("text/", "application/x-ndjson")
_OF_ANY_CALL: Final = (500,)
_OF_A_CALL_WITH_TOKEN: Final = (401, 403)
_CONTROL: Final[tuple[Any, ...]] = (
    control.Token,
    control.Attach,
    control.Detach,
    control.Pull,
    control.Ping,
    control.Welcome,
    control.Attached,
    control.Detached,
    control.Results,
    control.Pong,
    control.Error,
    control.Executed,
    control.Behind,
    control.Dropped,
    control.Changed,
    control.Failing,
)
_ABOUT: Final = (
    "Subscribe to queries over big data. Every call but those marked open needs the header "
    "`Authorization: Bearer TOKEN`; an admin's token may make every call. Brokers also hold a WebSocket to "
    "`/control?broker=NAME`, whose messages are among the schemas."
)


def document(operations: Iterable[Operation]) -> Json:
    """The document, as what JSON is made of."""
    operations = tuple(operations)
    structs = _structs(operations)
    references, components = msgspec.json.schema_components(structs, ref_template=_REFERENCE)
    schemas = dict(zip(structs, references, strict=True))
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tocsin data cluster", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": {name: _tidy(schema) for name, schema in _plain(components).items()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _structs(operations: Iterable[Operation]) -> list[Any]:
    """Every struct a call takes or gives, once, and those of the control socket."""
    structs: dict[Any, None] = {messages.Failure: None}
    for operation in operations:
        spoken_of = [*operation.answers.values(), *(operation.body.media.values() if operation.body else ())]
        structs |= {struct: None for struct in spoken_of if not isinstance(struct, str)}
    return [*structs, *_CONTROL]


def _operation(operation: Operation, schemas: Mapping[Any, Json]) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description or operation.summary + ".",
        "tags": [operation.group],
        "x-access": operation.access.value,
        "security": [] if operation.access is Access.OPEN else [{"bearer": []}],
        "parameters": _parameters(operation),
        "responses": _responses(operation, schemas),
    }
    if operation.paper:
        described["x-paper"] = operation.paper
    if operation.body:
        media = {name: {"schema": _schema(struct, name, schemas)} for name, struct in operation.body.media.items()}
        next(iter(media.values()))["example"] = _example(operation.body.example, next(iter(media)))
        described["requestBody"] = {"required": True, "content": media}
    return described


def _example(text: str, media: str) -> Any:
    return msgspec.json.decode(text) if media == "application/json" else text


def _parameters(operation: Operation) -> list[Json]:
    in_path = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    queries = [
        {"name": query.name, "in": "query", "description": query.description, "schema": dict(query.schema)}
        for query in operation.query
    ]
    return [in_path, *queries] if "{name}" in operation.path else queries


def _responses(operation: Operation, schemas: Mapping[Any, Json]) -> Json:
    with_token = () if operation.access is Access.OPEN else _OF_A_CALL_WITH_TOKEN
    refusals = sorted({*operation.errors, *with_token, *_OF_ANY_CALL})
    failure = {"application/json": {"schema": schemas[messages.Failure]}}
    answers: Json = {
        str(status): {"description": _phrase(status), "content": failure}
        for status in refusals
        if status not in operation.answers
    }
    for status, struct in operation.answers.items():
        words = isinstance(struct, str)
        answers[str(status)] = {"description": struct if words else _phrase(status)}
        if not words:
            answers[str(status)]["content"] = {"application/json": {"schema": schemas[struct]}}
    return dict(sorted(answers.items()))


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _schema(struct: type | str, media: str, schemas: Mapping[Any, Json]) -> Json:
    if not isinstance(struct, str):
        return schemas[struct]
    textual = media.startswith(_TEXTUAL)
    return {"type": "string", "description": struct} if textual else {"description": struct}


def _plain(components: Json) -> Json:
    """As JSON has them: defaults that are tuples are lists there."""
    plain: Json = msgspec.json.decode(msgspec.json.encode(components))
    return plain


def _tidy(schema: Json) -> Json:
    """The schema with its description as plain lines."""
    words = schema.get("description", "").replace(":class:", "").replace("``", "`").split()
    return schema | {"description": " ".join(words)} if words else schema
