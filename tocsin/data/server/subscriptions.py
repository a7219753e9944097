"""The calls brokers make, for those that do not use the control socket."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from tocsin.data.server.call import Call
from tocsin.http.answers import answer
from tocsin.log import get_logger
from tocsin.model import messages

log = get_logger(__name__)


async def register(call: Call) -> Response:
    """Makes a broker known."""
    broker = await call.decode(messages.BrokerAddress)
    call.require_broker(broker.name)
    await call.cluster.register_broker(broker.name, broker.url)
    log.info("broker registered", broker=broker.name, url=broker.url)
    return answer(broker, 201)


async def subscribe(call: Call) -> Response:
    """Attaches a broker to subscriptions."""
    wanted = await call.decode(messages.Subscribe)
    call.require_broker(wanted.broker)
    return answer(messages.Subscribed(await call.cluster.subscribe(wanted.broker, wanted.channel, wanted.parameters)))


async def unsubscribe(call: Call) -> Response:
    """Detaches a broker from subscriptions."""
    unwanted = await call.decode(messages.Unsubscribe)
    call.require_broker(unwanted.broker)
    return answer(messages.Unsubscribed(await call.cluster.unsubscribe(unwanted.broker, unwanted.ids)))


async def results(call: Call) -> Response:
    """What executions found, as far as fits into an answer, but always the first of them as a whole."""
    wanted = await call.decode(messages.ResultsWanted)
    most = call.settings.data.max_request_bytes
    parts = [part async for part in call.cluster.pull(wanted.channel, wanted.first, wanted.last, wanted.ids, most)]
    found = messages.ResultsFound([one for part in parts for one in part.results], parts[-1].upto, parts[-1].oldest)
    return await asyncio.to_thread(answer, found)


async def rates(call: Call) -> Response:
    """How many bytes per second subscriptions bring."""
    wanted = await call.decode(messages.RatesWanted)
    return answer(messages.RatesFound(await call.cluster.rates(wanted.ids)))
