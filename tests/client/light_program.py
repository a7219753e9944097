"""A program that subscribes and publishes with what ``pip install tocsin`` brings, and says what it was told, and which
large packages that took. ``light_trial.py`` runs it in such an environment."""

import asyncio
import sys

import tocsin
from tocsin.client import register


async def main(url: str) -> None:
    """As a reader of the README would write it."""
    token = await register(url, "ann")
    async with tocsin.connect(url, token) as me:
        floods = await me.subscribe("Emergencies", event="flood")
        await me.publish("reports", [{"event": "flood"}])
        print("subscribed", flush=True)
        print((await anext(floods)).payload.decode())
    print(*sorted({name.split(".")[0] for name in sys.modules} & {"pyarrow", "numpy", "numba", "pyspark", "pandas"}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
