"""What keeps a definition from being made, replaced or removed: asked of a catalog, and of a draft of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from tocsin.errors import ConflictError, NotFoundError
from tocsin.model import names
from tocsin.schema.definitions import Channel, Dataset, DatasetKind, Feed

T = TypeVar("T")


class KnownDefinitions(Protocol):
    """What is defined, by name."""

    @property
    def datasets(self) -> Mapping[str, Dataset]:
        """The datasets."""

    @property
    def feeds(self) -> Mapping[str, Feed]:
        """The feeds."""

    @property
    def channels(self) -> Mapping[str, Channel]:
        """The channels."""

    def uses(self, channel: str, dataset: str) -> bool:
        """Whether the body of a channel reads a dataset."""

    def has_records(self, dataset: str) -> bool:
        """Whether there are records in a dataset."""


def find(known: Mapping[str, T], name: str, what: str) -> T:
    """The thing of that name, in any case."""
    folded = name.casefold()
    found = next((value for key, value in known.items() if key.casefold() == folded), None)
    if found is None:
        raise NotFoundError(f"there is no {what} {name}{names.suggestion(name, list(known))}")
    return found


def check_dataset(known: KnownDefinitions, dataset: Dataset) -> None:
    """A dataset can be made, or made anew."""
    existing = known.datasets.get(dataset.name)
    if existing is None:
        return
    check_unused(known, dataset.name, "replaced")
    if existing.kind is not DatasetKind.REFERENCE and known.has_records(dataset.name):
        raise ConflictError(f"dataset {dataset.name} has records; drop it first if they may go")


def check_unused(known: KnownDefinitions, dataset: str, what: str) -> None:
    """A dataset can be ``what``, replaced or dropped: nobody needs it."""
    users = [f"feed {feed.name}" for feed in known.feeds.values() if feed.dataset == dataset]
    users += [f"channel {name}" for name in known.channels if known.uses(name, dataset)]
    if users:
        raise ConflictError(f"dataset {dataset} cannot be {what}: {', '.join(users)} use it; drop these first")


def check_feed(known: KnownDefinitions, feed: Feed) -> None:
    """A feed can be made, or made anew."""
    other = next((each.name for each in known.feeds.values() if each.dataset == feed.dataset), feed.name)
    if other != feed.name:
        raise ConflictError(f"dataset {feed.dataset} is filled by feed {other} already; a dataset has one feed")
    dataset = find(known.datasets, feed.dataset, "dataset")
    if dataset.kind is DatasetKind.KEYED and feed.sliced_by != dataset.primary_key:
        raise ConflictError(
            f"dataset {dataset.name} keeps the newest record per {dataset.primary_key}, which needs the records of "
            f"a key in one slice: say SLICED BY {dataset.primary_key}"
        )


def check_loaded(known: KnownDefinitions, dataset: Dataset) -> None:
    """A dataset can be filled from a file."""
    if dataset.kind is not DatasetKind.REFERENCE:
        feed = next((feed.name for feed in known.feeds.values() if feed.dataset == dataset.name), "FEED")
        raise ConflictError(
            f"only a REFERENCE dataset is loaded; {dataset.name} is filled by its feed: tocsin publish {feed} FILE"
        )
