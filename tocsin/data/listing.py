"""What SHOW and DESCRIBE tell about what there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tocsin.data.catalog import Catalog
from tocsin.data.language.forms import Listing, Thing
from tocsin.data.language.render import render
from tocsin.data.live_channels import LiveChannel, LiveChannels
from tocsin.schema.definitions import Dataset

_MOST_SUBSCRIPTIONS = 1000


def list_things(catalog: Catalog, what: str, limit: int = _MOST_SUBSCRIPTIONS) -> list[dict[str, Any]]:
    """The things of one kind, a row each; of subscriptions, of which there may be millions, at most ``limit``."""
    match Listing(what):
        case Listing.DATASETS:
            return [_dataset(catalog, dataset) for dataset in list(catalog.datasets.values())]
        case Listing.FEEDS:
            return [_feed(catalog, name) for name in list(catalog.pipelines)]
        case Listing.CHANNELS:
            return [_channel(catalog.live, live) for live in catalog.live]
        case Listing.SUBSCRIPTIONS:
            return list(itertools.islice(_subscriptions(catalog), limit))
        case Listing.BROKERS:
            return [_broker(catalog, broker) for broker in catalog.brokers()]


def total(catalog: Catalog, what: str) -> int:
    """How many things of one kind there are."""
    if Listing(what) is Listing.SUBSCRIPTIONS:
        return sum(catalog.live.subscriptions.count(name) for name in list(catalog.channels))
    return len(list_things(catalog, what))


def describe_thing(catalog: Catalog, what: Thing, name: str) -> list[dict[str, Any]]:
    """One thing, with all that is known of it."""
    match what:
        case Thing.DATASET:
            return [_dataset(catalog, catalog.dataset(name))]
        case Thing.FEED:
            return [_feed(catalog, catalog.live_feeds.find(name).feed.name)]
        case Thing.CHANNEL:
            live = catalog.live.find(name)
            columns = dict(live.compiled.columns) if live.compiled else {}
            failing = [aside._asdict() for aside in catalog.live.set_aside(live.definition.name)]
            return [_channel(catalog.live, live) | {"columns": columns, "failing": failing}]


def _dataset(catalog: Catalog, dataset: Dataset) -> dict[str, Any]:
    table = catalog.tables[dataset.name]
    return {
        "name": dataset.name,
        "kind": dataset.kind,
        "version": table.version,
        "files": len(table.snapshot.files),
        "statement": render(dataset),
    }


def _feed(catalog: Catalog, name: str) -> dict[str, Any]:
    pipeline = catalog.pipelines[name]
    health = pipeline.health()
    return {
        "name": name,
        "dataset": pipeline.feed.dataset,
        "slices": pipeline.feed.slices,
        "records": pipeline.log.records,
        "slice_records": pipeline.slice_records,
        "assignment_failures": pipeline.admission.assignment_failures,
        "backlog_bytes": health.backlog_bytes,
        "dead_letters": pipeline.dead_letters.read(columns=["position"]).num_rows,
        "problem": health.error,
        "statement": render(pipeline.feed),
    }


def _channel(channels: LiveChannels, live: LiveChannel) -> dict[str, Any]:
    channel = live.definition
    status = channels.status(channel.name)
    return {
        "name": channel.name,
        "kind": channel.kind,
        "period": channel.period,
        "matched": _when_matched(live),
        "subscriptions": channels.subscriptions.count(channel.name),
        "state": status.state,
        "execution": live.results.execution,
        "seconds": round(status.last_seconds, 3),
        "by_nodes": status.by_nodes,
        "missed": status.missed,
        "error": status.error,
        "set_aside": len(channels.set_aside(channel.name)),
        "dead_letters": channels.dead_letters.count(channel.name),
        "statement": render(channel),
    }


def _when_matched(live: LiveChannel) -> str:
    """When a channel is executed: by its period, or for each commit, on its arrival where its body allows that."""
    if live.definition.period is not None:
        return "periodically"
    return "on arrival" if live.compiled is not None and live.compiled.parallel else "when stored"


def _subscriptions(catalog: Catalog) -> Iterator[dict[str, Any]]:
    for name in list(catalog.channels):
        for be in catalog.live.subscriptions.segments(name).ids():
            _, values = catalog.live.subscriptions.values(int(be))
            yield {"name": str(be), "channel": name, "parameters": values}


def _broker(catalog: Catalog, broker: Any) -> dict[str, Any]:
    held = len(catalog.live.subscriptions.of(broker.name))
    return {"name": broker.name, "url": broker.url, "registered_at": broker.registered_at, "subscriptions": held}
