"""One execution for all subscriptions finds exactly what one query for each of them would, or the body is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from tests.data.compiler.conftest import Channels
from tests.data.compiler.zoo import REFUSED, VALUES, ZOO
from tocsin.data.compiler import query
from tocsin.data.compiler.check import Compiled, check
from tocsin.data.compiler.rewrite import BE, SUBSCRIPTIONS, Rewriter, fresh, parameter
from tocsin.errors import StatementError
from tocsin.schema.definitions import Channel, Dataset

pytestmark = pytest.mark.spark

# The rows, as JSON texts, that each subscription gets.
Found = dict[int, list[str]]
Values = Mapping[str, object]


@pytest.mark.parametrize("animal", ZOO)
def test_one_execution_finds_what_one_query_per_subscription_finds(
    animal: str,
    session: SparkSession,
    views: Mapping[str, str],
    quiet_views: Mapping[str, str],
    datasets: Mapping[str, Dataset],
    channel: Channels,
) -> None:
    compiled = check(session, channel(*ZOO[animal]), datasets)
    found = _compared(session, views, datasets, compiled)
    assert any(found.values()), "nothing is found: this animal shows nothing"
    if compiled.fresh and not compiled.quiet:
        _compared(session, quiet_views, datasets, compiled)
    if compiled.parallel:
        assert _settled(_in_halves(session, views, compiled)) == _settled(found)


@pytest.mark.parametrize("animal", REFUSED)
def test_what_cannot_be_the_same_for_all_is_refused(
    animal: str, session: SparkSession, datasets: Mapping[str, Dataset], channel: Channels
) -> None:
    parameters, body, reason = REFUSED[animal]
    with pytest.raises(StatementError, match=reason.replace("(", r"\(").replace(")", r"\)")) as refused:
        check(session, channel(parameters, body), datasets)
    assert refused.value.line == 1
    assert "__" not in refused.value.reason


def _compared(
    session: SparkSession, views: Mapping[str, str], datasets: Mapping[str, Dataset], compiled: Compiled
) -> Found:
    """What is found for all subscriptions together, which is what is found for each."""
    subscriptions = _subscriptions(compiled.channel)
    together = _together(session, views, compiled, subscriptions)
    queries = [_alone(compiled.channel, datasets, values) for values in subscriptions]
    if "row_number()" in compiled.statement.split("LATERAL")[0]:
        assert together == _in_order(session, views, queries)
    else:
        assert _settled(together) == _settled(_apart(session, views, queries))
    return together


def _in_halves(session: SparkSession, views: Mapping[str, str], compiled: Compiled) -> Found:
    """What is found in one half of the new records and in the other, put together."""
    [dataset] = compiled.fresh
    subscriptions, new, found = _subscriptions(compiled.channel), views[fresh(dataset)], Found()
    for half in range(2):
        rows = f"SELECT * FROM {new} WHERE pmod(xxhash64(to_json(struct(*))), 2) = {half}"
        session.sql(rows).createOrReplaceTempView("zoo_half")
        part = _together(session, {**views, fresh(dataset): "zoo_half"}, compiled, subscriptions)
        for be, texts in part.items():
            found.setdefault(be, []).extend(texts)
    return found


def _subscriptions(channel: Channel) -> list[Values]:
    """Four of them, and one more that is equal to the first but for its id."""
    chance = random.Random(channel.body)
    chosen = [{p.name: chance.choice(VALUES[p.name]) for p in channel.parameters} for _ in range(4)]
    return [*chosen, chosen[0]]


def _literals(channel: Channel, values: Values) -> list[str]:
    return [f"CAST('{values[p.name]}' AS {p.type.ddl})" for p in channel.parameters]


def _alone(channel: Channel, datasets: Mapping[str, Dataset], values: Values) -> str:
    return Rewriter(channel, datasets).for_one(_literals(channel, values)).sql


def _together(
    session: SparkSession, views: Mapping[str, str], compiled: Compiled, subscriptions: list[Values]
) -> Found:
    rows = []
    for be, values in enumerate(subscriptions):
        literals = enumerate(_literals(compiled.channel, values))
        rows.append(", ".join([f"{be}L AS {BE}", *(f"{literal} AS {parameter(i)}" for i, literal in literals)]))
    session.sql(" UNION ALL ".join(f"SELECT {row}" for row in rows)).createOrReplaceTempView("zoo_subscriptions")
    bound = query.bind_views(compiled.statement, {**views, SUBSCRIPTIONS: "zoo_subscriptions"})
    found: Found = {}
    for row in session.sql(bound).collect():
        found[row[BE]] = [json.dumps(record) for record in json.loads(row["payload"])]
        assert row["rows"] == len(found[row[BE]])
        assert row["bytes"] == len(row["payload"].encode())
    return found


def _apart(session: SparkSession, views: Mapping[str, str], queries: list[str]) -> Found:
    """All in one statement, which is quicker, but loses the order."""
    row = f"to_json(struct(q.*), {query.JSON}) AS row"
    tagged = [f"SELECT {be} AS be, {row} FROM ({text}\n) q" for be, text in enumerate(queries)]
    found: Found = {}
    for be, text in session.sql(query.bind_views(" UNION ALL ".join(tagged), views)).collect():
        found.setdefault(be, []).append(text)
    return found


def _in_order(session: SparkSession, views: Mapping[str, str], queries: list[str]) -> Found:
    found: Found = {}
    for be, text in enumerate(queries):
        frame = session.sql(query.bind_views(text, views)).selectExpr(f"to_json(struct(*), {query.JSON})")
        if rows := [json.dumps(json.loads(row)) for (row,) in frame.collect()]:
            found[be] = rows
    return found


def _settled(found: Found) -> Found:
    """Rows, and arrays in them, in one order: that of collect_list is nobody's promise."""
    return {be: sorted(json.dumps(_sorted(json.loads(text))) for text in texts) for be, texts in found.items()}


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {name: _sorted(inner) for name, inner in value.items()}
    return sorted((_sorted(inner) for inner in value), key=json.dumps) if isinstance(value, list) else value
