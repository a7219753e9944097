"""A subscriber's program, to be run in a process of its own: it prints what it holds, what it sees and where it is.

Each line of its output is a JSON object. It runs until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import msgspec

import tocsin
from tests.network.checker import digest
from tests.network.swarm import RULES
from tocsin.client.subscriber import Subscriber
from tocsin.client.subscription import Subscription


def say(**what: Any) -> None:
    """One line, which has left this process when this returns."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def read(subscription: Subscription) -> None:
    async for note in subscription:
        payload = digest(msgspec.json.decode(note.payload))
        say(subscription=note.subscription, execution=note.execution, digest=payload, recovered=note.recovered)


async def watch(me: Subscriber) -> None:
    async for notice in me.events():
        say(notice=notice.kind, message=notice.message)


async def run(url: str, token: str, wanted: list[tuple[str, dict[str, Any]]]) -> None:
    async with tocsin.connect(url, token=token, rules=RULES) as me, asyncio.TaskGroup() as group:
        group.create_task(watch(me))
        for channel, parameters in wanted:
            subscription = await me.subscribe(channel, **parameters)
            say(held=subscription.number, channel=channel, since=subscription.taken)
            group.create_task(read(subscription))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
