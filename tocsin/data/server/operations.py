"""The table of all calls. Routes, access and documentation are made from it: a new call is one entry here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tocsin.data.language.forms import Listing, Thing
from tocsin.data.server import publications, statements, status, subscriptions
from tocsin.data.server.access import Access
from tocsin.data.server.call import Handler, Operation, RequestBody
from tocsin.model import messages
from tocsin.model.slices import Draining, SlicesStatus

_SQL = "Statements, separated by semicolons"
_EXAMPLES: Final = {
    Thing.DATASET: "CREATE DATASET Reports (id STRING, etype STRING, x DOUBLE, y DOUBLE) PRIMARY KEY id;",
    Thing.FEED: "CREATE FEED reports INTO Reports SLICED BY id INTO 16 SLICES;",
    Thing.CHANNEL: "CREATE CONTINUOUS CHANNEL ReportsOfType(event STRING) AS "
    "SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r);",
}
_RECORD = '{"id": "r1", "etype": "flood", "x": 1200.5, "y": 830.0}'


def _definitions(thing: Thing) -> Iterator[Operation]:
    """The calls that create, list and drop one kind of thing."""
    plural, group = f"{thing}s", "Definitions"
    yield Operation(
        "POST",
        f"/{plural}",
        Access.ADMIN,
        statements.create(thing),
        f"Create a {thing}",
        "One CREATE statement, as text or as the member `statement` of a JSON object. Creating again what exists "
        "changes nothing; a different definition is refused with 409 unless the statement says OR REPLACE.",
        paper=f"create{thing}",
        group=group,
        body=RequestBody({"text/sql": _SQL, "application/json": messages.Statement}, _EXAMPLES[thing]),
        answers={201: messages.StatementOutcome, 200: messages.StatementOutcome},
        errors=(400, 409, 413),
    )
    yield _listing(Listing(plural), group)
    yield Operation(
        "DELETE",
        f"/{plural}/{{name}}",
        Access.ADMIN,
        statements.drop(thing),
        f"Drop a {thing}",
        paper=f"drop{thing}",
        group=group,
        answers={200: messages.StatementOutcome},
        errors=(400, 404, 409),
    )


def _listing(what: Listing, group: str, access: Access = Access.ANY) -> Operation:
    return Operation(
        "GET",
        f"/{what}",
        access,
        status.listing(what),
        f"List the {what}",
        group=group,
        query=(status.LIMIT,),
        answers={200: messages.Listed},
        errors=(400,),
    )


def _file(path: str, handler: Handler, summary: str, description: str) -> Operation:
    """A call that takes an application file."""
    return Operation(
        "POST",
        path,
        Access.ADMIN,
        handler,
        summary,
        description,
        group="Definitions",
        body=RequestBody({"text/sql": _SQL, "application/json": messages.Statement}, "SHOW CHANNELS;"),
        answers={200: messages.Applied},
        errors=(400, 409, 413),
    )


OPERATIONS: Final[tuple[Operation, ...]] = (
    _file(
        "/apply",
        statements.apply,
        "Apply an application file",
        "Carries the statements out in order and says what each did. All are checked before the first is carried out, "
        "so that a file with a mistake changes nothing; should one fail all the same, the error's `outcomes` say what "
        "those before it did. A definition that exists differently is reported as `changed` and left alone unless its "
        "statement says OR REPLACE. LOAD DATASET is refused here.",
    ),
    _file(
        "/check",
        statements.check,
        "Check an application file",
        "Says what applying the statements would do, and changes nothing. LOAD DATASET is checked as far as its name.",
    ),
    *_definitions(Thing.DATASET),
    Operation(
        "POST",
        "/datasets/{name}/load",
        Access.ADMIN,
        statements.load,
        "Load a dataset from a file",
        "The body is the file; its Content-Type says how to read it. It is loaded as a whole or not at all.",
        group="Definitions",
        body=RequestBody(
            {
                "text/csv": "Comma-separated values whose first row names the columns",
                "application/json": "An array of records",
                "application/x-ndjson": "One record per line",
                "application/vnd.apache.parquet": "A Parquet file",
            },
            "id,name,x,y,capacity\ns1,Town hall,1200,800,300\n",
        ),
        answers={200: messages.Loaded},
        errors=(400, 404, 413, 507),
    ),
    *_definitions(Thing.FEED),
    *_definitions(Thing.CHANNEL),
    Operation(
        "POST",
        "/feeds/{name}",
        Access.PUBLISHER,
        publications.publish,
        "Publish records",
        "One record, an array of records, or one record per line. Accepted records are on disk when this answers. "
        "When only some are accepted, `refused` says which are not, and why; when none is, the status is 400.",
        paper="publish",
        group="Publications",
        body=RequestBody(
            {
                "application/json": "A record, or an array of records",
                "application/x-ndjson": "One record per line",
                messages.SHARES: "What a broker passes on: an array of objects with `subscriber`, `groups`, `records`",
            },
            _RECORD,
        ),
        answers={200: messages.Published},
        errors=(400, 404, 413, 429, 507),
    ),
    Operation(
        "POST",
        "/brokers",
        Access.BROKER,
        subscriptions.register,
        "Register a broker",
        "Done again with another URL, it changes the URL.",
        paper="createbroker",
        group="Brokers",
        body=RequestBody(
            {"application/json": messages.BrokerAddress}, '{"name": "north", "url": "ws://127.0.0.1:8801"}'
        ),
        answers={201: messages.BrokerAddress},
        errors=(400,),
    ),
    _listing(Listing.BROKERS, "Brokers"),
    Operation(
        "POST",
        "/subscriptions",
        Access.BROKER,
        subscriptions.subscribe,
        "Subscribe",
        "Attaches a broker to one BE subscription per object of parameters. Equal parameters are one subscription, "
        "however many brokers want it.",
        paper="subscribe",
        group="Brokers",
        body=RequestBody(
            {"application/json": messages.Subscribe},
            '{"broker": "north", "channel": "ReportsOfType", "parameters": [{"event": "flood"}, {"event": "fire"}]}',
        ),
        answers={200: messages.Subscribed},
        errors=(400, 404, 413),
    ),
    # What people subscribed to is theirs.
    _listing(Listing.SUBSCRIPTIONS, "Brokers", Access.ADMIN),
    Operation(
        "POST",
        "/subscriptions/detach",
        Access.BROKER,
        subscriptions.unsubscribe,
        "Unsubscribe",
        "A BE subscription that no broker wants any more is no longer executed.",
        paper="unsubscribe",
        group="Brokers",
        body=RequestBody({"application/json": messages.Unsubscribe}, '{"broker": "north", "ids": [1, 2]}'),
        answers={200: messages.Unsubscribed},
        errors=(400, 404, 413),
    ),
    Operation(
        "POST",
        "/results",
        Access.BROKER,
        subscriptions.results,
        "Pull results",
        "Everything that executions `first` to `last` of a channel found for these BE subscriptions. A payload is the "
        "JSON array of what was found.",
        paper="results",
        group="Brokers",
        body=RequestBody(
            {"application/json": messages.ResultsWanted},
            '{"channel": "ReportsOfType", "first": 1, "last": 3, "ids": [1, 2]}',
        ),
        answers={200: messages.ResultsFound},
        errors=(400, 404, 413),
    ),
    Operation(
        "POST",
        "/rates",
        Access.BROKER,
        subscriptions.rates,
        "Ask for data rates",
        "The moving average of what each BE subscription brings, in bytes per second.",
        group="Brokers",
        body=RequestBody({"application/json": messages.RatesWanted}, '{"ids": [1, 2]}'),
        answers={200: messages.RatesFound},
        errors=(400, 404, 413),
    ),
    Operation(
        "GET",
        "/slices",
        Access.ANY,
        status.slices,
        "Ask for slices",
        "Who owns which slice of every feed, at which rate, what waits and what is moving, and how busy the processing "
        "nodes are.",
        group="Processing nodes",
        answers={200: SlicesStatus},
    ),
    Operation(
        "PUT",
        "/nodes/{name}/draining",
        Access.ADMIN,
        status.drain_node,
        "Drain a processing node",
        "It gives its slices to others, and may leave then. With `on` false it may have some again.",
        group="Processing nodes",
        body=RequestBody({"application/json": Draining}, '{"on": true}'),
        answers={200: Draining},
        errors=(400, 404, 409, 413),
    ),
    Operation(
        "GET",
        "/health",
        Access.OPEN,
        status.health,
        "Ask for health",
        "Without a token, the bare status; with one, everything. 503 while the data cluster is starting.",
        paper="health",
        group="Status",
        answers={200: messages.Health, 503: messages.Health},
    ),
    Operation(
        "GET",
        "/openapi.json",
        Access.OPEN,
        status.openapi,
        "Get this description",
        group="Status",
        answers={200: "The OpenAPI document"},
    ),
    Operation(
        "GET",
        "/docs",
        Access.OPEN,
        status.page,
        "Read this description",
        group="Status",
        answers={200: "A page that shows the OpenAPI document"},
    ),
    Operation(
        "GET",
        "/",
        Access.OPEN,
        status.home,
        "Come to the description",
        group="Status",
        answers={307: "Leads to /docs"},
    ),
)
