"""What the server needs of the data cluster and of the tokens, and nothing more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tocsin.data.attachment import Attachment
from tocsin.data.control.core import Position
from tocsin.model.control import Notice
from tocsin.model.histories import Cursor
from tocsin.model.messages import Health, Listed, Loaded, Published, PublishedShares, Pulled, StatementOutcome
from tocsin.model.slices import SlicesStatus
from tocsin.model.terms import Asker

if TYPE_CHECKING:
    from tocsin.data.sharing.heads import Heads


class Notices(Protocol):
    """What a broker is to be told, as it happens; an ``asyncio.Queue`` is one."""

    async def get(self) -> Notice:
        """The next notice, when there is one."""
        ...


class DataCluster(Protocol):
    """A running data cluster. Every method leaves the event loop free while it works.

    What a client may see is raised as a :class:`~tocsin.errors.TocsinError`; anything else is a fault.
    """

    async def apply(
        self, text: str, directory: Path | None, told: Callable[[StatementOutcome], None] = lambda _: None
    ) -> list[StatementOutcome]:
        """Carries the statements out, in order, once all of them have been checked.

        Each outcome is ``told``, from any thread, as soon as there is one: also those before a statement that fails.
        LOAD reads paths relative to ``directory``; None refuses LOAD.
        A definition that differs from the existing one without OR REPLACE is left alone: its outcome is "changed".
        DROP IF EXISTS of what does not exist is "unchanged".
        """
        ...

    async def check(self, text: str) -> list[StatementOutcome]:
        """What applying the statements would do. Of LOAD, only whether there is such a dataset."""
        ...

    async def load(self, dataset: str, path: Path) -> Loaded:
        """Fills the dataset with the rows of a file, told apart by its ending, and says how many."""
        ...

    async def publish(self, feed: str, body: bytes, content_type: str, publisher: str | None = None) -> Published:
        """Takes records; the accepted ones are on disk when it returns. Without a publisher, they may be anybody's."""
        ...

    async def publish_shares(self, feed: str, body: bytes) -> PublishedShares:
        """Takes records of several subscribers, as far as each of them may publish there."""
        ...

    async def register_broker(self, name: str, url: str) -> None:
        """Makes a broker known, or its new URL."""
        ...

    def position(self, channel: str) -> Position | None:
        """How far the channel of that name is now, in any spelling; None if there is none. Answers at once."""
        ...

    async def attach(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> Attachment:
        """The BE subscriptions for these parameters, in their order, now wanted by the broker, with their rates.

        With an ``asker`` only if that one may use the channel, and bound parameters are filled in. A channel that was
        dropped is a :class:`~tocsin.errors.GoneError`, one that never was a plain NotFoundError.
        """
        ...

    def compare(self, broker: str, channel: str, known: Cursor) -> None:
        """A broker has heard of this execution of a channel: by that other data than before are noticed."""
        ...

    async def subscribe(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> list[int]:
        """As :meth:`attach`, but only the numbers."""
        ...

    async def unsubscribe(self, broker: str, bes: list[int]) -> int:
        """The broker wants these no longer; how many of them it did want."""
        ...

    def pull(
        self,
        channel: str,
        first: int,
        last: int,
        bes: list[int] | None = None,
        most: int | None = None,
        broker: str | None = None,
    ) -> AsyncGenerator[Pulled, None]:
        """Results of executions ``first`` to ``last``, by execution, then BE subscription, in parts, at least one.

        None means those of all BE subscriptions, or of those that ``broker`` holds. No further execution is begun after
        ``most`` bytes.
        """
        ...

    async def rates(self, bes: list[int]) -> list[float]:
        """Bytes per second of each."""
        ...

    async def show(self, what: str, limit: int) -> Listed:
        """The first ``limit`` datasets, feeds, channels, subscriptions or brokers, each with at least its ``name``.

        A dataset, feed or channel also has the ``statement`` that creates it, a feed the name of its ``dataset``.
        """
        ...

    @property
    def heads(self) -> Heads | None:
        """Of the feeds whose slices processing nodes share; None where they do not."""

    async def slices(self) -> SlicesStatus:
        """Who owns which slice of every feed."""
        ...

    async def drain_node(self, node: str, on: bool) -> None:
        """Has a processing node emptied, or lets it have slices again."""
        ...

    async def health(self) -> Health:
        """How it is; answers at once whatever it is busy with."""
        ...

    def listen(self, broker: str) -> AbstractAsyncContextManager[Notices]:
        """While entered, collects what the broker is to be told."""
        ...


class KnownTokens(Protocol):
    """The known bearer tokens."""

    def role_of(self, token: str) -> tuple[str, str] | None:
        """The name and the role of a token's holder, or None if nobody holds it."""
        ...
