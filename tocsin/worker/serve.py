"""Running a node: Spark, the connection to the head, and how it is, until the process is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final, Literal

import msgspec
from pyspark.sql import SparkSession
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tocsin.data import session
from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.addresses import TopicLog
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.sharing.node import SliceWork
from tocsin.errors import SettingsError, SparkEndedError, UnavailableError
from tocsin.http import listening as sockets
from tocsin.http.answers import answer
from tocsin.http.doorway import Doorways
from tocsin.http.envelope import Envelope
from tocsin.http.failures import failure, no_such_call
from tocsin.http.listening import HttpServer, address, config
from tocsin.log import get_logger
from tocsin.settings import Settings, WorkerSettings
from tocsin.tasks import until_one_ends
from tocsin.worker.link import heads_of
from tocsin.worker.worker import Worker

log = get_logger(__name__)

_CONNECTIONS = 100
_HERE: Final = "this is a processing node"


class WorkerHealth(msgspec.Struct, frozen=True):
    """``starting`` until the head was reached, ``degraded`` while it cannot be, or a feed cannot be processed here."""

    status: Literal["ok", "degraded", "starting"]
    node: str
    head: bool
    spark: bool
    slices: int
    problems: list[str] = []


class WorkerSpark:
    """The node's session, started when the first feed is known: only then is it clear what it must be able to read.

    What can go wrong: its process ends (``ended`` is set, and the node ends as well); it was started without Kafka's
    connector, or S3's, and a feed's log or the lake is there (UnavailableError: the worker is to be started again).
    """

    def __init__(self, settings: Settings, scratch: Path) -> None:
        self._settings, self._scratch, self._access = settings, scratch, KafkaAccess.of(settings.feeds)
        self._loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        self._session: SparkSession | None = None
        self._starting = threading.Lock()
        self._kafka = self._bucket = self._stopping = False
        self._numbers = count(1)

    @property
    def is_up(self) -> bool:
        """Whether it is there."""
        return self._session is not None

    async def make_work(self, shared: SharedFeed) -> tuple[SliceWork, bool]:
        """What processes slices of a feed."""
        return await asyncio.to_thread(self._make_work, shared)

    def stop(self) -> None:
        """Ends it."""
        self._stopping = True
        if self._session is not None:
            session.stop(self._session)

    def _make_work(self, shared: SharedFeed) -> tuple[SliceWork, bool]:
        kafka, shared = isinstance(shared.log, TopicLog), shared.seen_with(self._settings.lake)
        bucket = shared.lake.is_bucket
        spark = self._start(kafka, shared)
        if kafka and not self._kafka:
            raise UnavailableError("its log is in Kafka, which Spark cannot read here: start this worker again")
        if bucket and not self._bucket:
            raise UnavailableError("its lake is in S3, which Spark cannot read here: start this worker again")
        # What was learnt of a dataset is another's, should there be one of that name again.
        ids = self._scratch / f"ids-{next(self._numbers)}"
        feeds = self._settings.feeds
        work = SliceProcessing(spark, shared, ids, kafka=self._access, functions=feeds.functions)
        return work, session.is_local(spark)

    def _start(self, kafka: bool, shared: SharedFeed) -> SparkSession:
        """Its session, which the first feed has started; others that come meanwhile wait for that."""
        with self._starting:
            if self._session is None:
                self._session = session.start(self._settings.spark, self._scratch, kafka, shared.folder.spark)
                self._kafka, self._bucket = kafka, shared.lake.is_bucket
                threading.Thread(target=self._watch, args=(self._session,), name="spark-watch", daemon=True).start()
            return self._session

    def _watch(self, spark: SparkSession) -> None:
        session.wait_for_end(spark)
        if not self._stopping:
            self._loop.call_soon_threadsafe(self.ended.set)


async def run(
    settings: Settings,
    *,
    listener: socket.socket | None = None,
    listening: Callable[[str], None] | None = None,
) -> None:
    """Works until SIGTERM or SIGINT, or until the head has emptied it; a second signal ends it at once.

    Once it says how it is, the URL for that is logged and given to ``listening``. Raises SettingsError for what a node
    cannot begin with, SparkEndedError when Spark is gone.
    """
    section = settings.worker
    check(section)
    listener = listener or sockets.bind("worker", section.host, section.port)
    with _scratch(section) as scratch, _signals() as told:
        spark = WorkerSpark(settings, scratch)
        worker = Worker(section, spark.make_work, settings.tls.ca)
        server = _server(worker, spark, section, listener, listening)
        try:
            await until_one_ends(server.serve([listener]), worker.run(), _until_over(worker, spark, told))
        finally:
            await asyncio.to_thread(spark.stop)


def check(section: WorkerSettings) -> None:
    """Raises SettingsError for what each setting allows but no node can begin with."""
    if not section.token:
        raise SettingsError(
            f"worker.token is empty, and the data cluster lets nobody in without: make one with "
            f"'tocsin token add {section.name} --role node', and set TOCSIN_WORKER_TOKEN"
        )
    heads = heads_of(section)
    if not heads or not all(url.startswith(("http://", "https://")) for url in heads):
        raise SettingsError(f"worker.head = {section.head} is not allowed: a URL begins with http:// or https://")


async def _until_over(worker: Worker, spark: WorkerSpark, told: asyncio.Event) -> None:
    async def leave() -> None:
        await told.wait()
        log.info("leaving: it ends when others have its slices; told again, it ends at once", slices=worker.slices)
        worker.leave()
        await worker.done.wait()

    async def finish() -> None:
        await worker.done.wait()

    async def break_down() -> None:
        await spark.ended.wait()
        raise SparkEndedError("Spark's process has ended, perhaps for want of memory; start the worker again")

    await until_one_ends(leave(), finish(), break_down())


class _Server(HttpServer):
    """Leaves signals to the node."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing."""
        yield


def _server(
    worker: Worker,
    spark: WorkerSpark,
    section: WorkerSettings,
    listener: socket.socket,
    listening: Callable[[str], None] | None,
) -> HttpServer:
    url = address(listener)

    def listens() -> None:
        log.info("worker listens", node=section.name, url=url, head=section.head)
        if listening:
            listening(url)

    async def health(_: Request) -> Response:
        told = _health(worker, spark, section.name)
        return answer(told, UnavailableError.status if told.status == "starting" else 200)

    app = Starlette(
        routes=[Route("/health", health)],
        middleware=[Middleware(Envelope)],
        exception_handlers={HTTPException: no_such_call(_HERE), Exception: lambda _, error: failure(error)},
    )
    doorways = Doorways(_CONNECTIONS)
    return _Server(config(app, doorways), listens, doorways)


def _health(worker: Worker, spark: WorkerSpark, name: str) -> WorkerHealth:
    up = worker.link.is_up
    status: Literal["ok", "degraded", "starting"] = "ok" if up and not worker.problems else "degraded"
    if worker.is_starting and not worker.problems:
        status = "starting"
    return WorkerHealth(status, name, up, spark.is_up, sum(worker.slices.values()), worker.problems)


@contextmanager
def _signals() -> Iterator[asyncio.Event]:
    """An event that is set when the process is told to end. Told twice, it ends as a crash does."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        if told.is_set():
            os._exit(1)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, tell)
    try:
        yield told
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextmanager
def _scratch(section: WorkerSettings) -> Iterator[Path]:
    """A directory that is gone in the end. A process that was killed leaves its own behind."""
    try:
        with tempfile.TemporaryDirectory(
            prefix=f"tocsin-{section.name}-", dir=section.scratch or None, ignore_cleanup_errors=True
        ) as made:
            yield Path(made)
    except OSError as error:
        raise SettingsError(f"worker.scratch = {section.scratch!r} cannot be used: {error.strerror}") from None
