"""What brokers are told, and who of them listens: executions, and channels that fail, change or are no more.

What is to be told comes from the threads of executions and of changes, and leaves in the event loop's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from tocsin.data.channels.execution import Execution
from tocsin.data.live_channels import LiveChannels
from tocsin.data.rates import Rates
from tocsin.log import get_logger
from tocsin.model.control import Changed, Dropped, Executed, Failing, Notice
from tocsin.model.weight import weight
from tocsin.schema.definitions import Channel

log = get_logger(__name__)


class BrokerNotices:
    """Tells each broker what concerns what it holds; a broker that does not listen is told nothing.

    Args:
        loop: in which brokers listen.
        rates: to which executions are added before anybody is told of them.
        live: gives the channels, with who holds which of their subscriptions.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, rates: Rates, live: Callable[[], LiveChannels]) -> None:
        self._loop, self._rates, self._live = loop, rates, live
        self._listeners: dict[str, list[asyncio.Queue[Notice]]] = {}

    @contextmanager
    def listen(self, broker: str) -> Iterator[asyncio.Queue[Notice]]:
        """While entered, collects what a broker is to be told."""
        notices: asyncio.Queue[Notice] = asyncio.Queue()
        self._listeners.setdefault(broker, []).append(notices)
        try:
            yield notices
        finally:
            self._listeners[broker].remove(notices)

    def executed(self, execution: Execution) -> None:
        """Counts an execution and tells the brokers; called from its thread."""
        now = time.time()
        self._rates.add(now, execution.channel, execution.bes, weight(execution.bytes))
        self.tell_failing(execution.channel, execution.failing)
        if not len(execution.bes):
            return
        holders = self._live().subscriptions.holders(execution.bes)
        log.debug("executed", channel=execution.channel, execution=execution.number, found=len(execution.bes))
        notices = {broker: self._notice(now, execution, bes) for broker, bes in holders.items()}
        self._loop.call_soon_threadsafe(self._tell, notices)

    def dropped(self, channel: str, incarnation: str) -> None:
        """Forgets a channel's rates and tells all brokers; called from the thread of changes."""
        self._rates.drop(channel)
        self._loop.call_soon_threadsafe(self._tell_all, Dropped(channel, incarnation))

    def changed(self, channel: Channel) -> None:
        """Tells all brokers by which terms subscribers are judged now; called from the thread of changes."""
        self._loop.call_soon_threadsafe(self._tell_all, Changed(channel.name, channel.terms))

    def failing(self, channel: str, reason: str) -> None:
        """Tells everybody who subscribes to a channel why nothing comes; called from the thread of an execution."""
        self.tell_failing(channel, dict.fromkeys(self._live().subscriptions.segments(channel).ids().tolist(), reason))

    def tell_failing(self, channel: str, failing: Mapping[int, str]) -> None:
        """Tells whose subscriptions are not served, or not with everything, and why; from any thread."""
        for message in sorted(set(failing.values())):
            holders = self._live().subscriptions.holders([be for be, why in failing.items() if why == message])
            if holders:
                notices = {broker: Failing(channel, bes.tolist(), message) for broker, bes in holders.items()}
                self._loop.call_soon_threadsafe(self._tell, notices)

    def _notice(self, now: float, execution: Execution, bes: npt.NDArray[np.int64]) -> Executed:
        """An execution, as a broker is told of it that holds these."""
        present = self._live()[execution.channel].position.incarnation
        forecast = self._rates.forecast(now, execution.channel, bes)
        return Executed(execution.channel, execution.number, bes.tolist(), present, forecast.rates, forecast.seconds)

    def _tell(self, told: Mapping[str, Notice]) -> None:
        """Tells each of these brokers what is for it."""
        for broker, notice in told.items():
            for notices in self._listeners.get(broker, []):
                notices.put_nowait(notice)

    def _tell_all(self, notice: Notice) -> None:
        for listeners in self._listeners.values():
            for notices in listeners:
                notices.put_nowait(notice)
