"""Batches on their way to a data cluster that answers late, wrongly or not at all: each is answered, in order."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from msgspec import Raw

from tests.waiting import until_async
from tocsin.broker.actions import PublishBatch
from tocsin.broker.events import BatchFailed, BatchPublished
from tocsin.broker.server.publications import Outcome, PublicationSender
from tocsin.model.messages import Share
from tocsin.testing.serving import serving

TAKEN = (200, '{"accepted": 1}')
Answer = tuple[int, str]


def batch(number: int, feed: str = "reports") -> PublishBatch:
    return PublishBatch(number, feed, [Share("ann", [Raw(b'{"id": "%d"}' % number)])])


@asynccontextmanager
async def sender(
    outcomes: list[Outcome], answer: Callable[[str], Answer | asyncio.Future[Answer]]
) -> AsyncIterator[PublicationSender]:
    """Sends to a data cluster that answers a request, given as its path, so."""

    async def handle(reader: StreamReader, writer: StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        given = answer(path)
        status, body = given if isinstance(given, tuple) else await given
        writer.write(f"HTTP/1.1 {status} .\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    async with (
        serving(handle) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, verify=False) as client,
    ):
        made = PublicationSender(client, outcomes.append)
        yield made
        await made.stop()


async def test_a_feeds_batches_go_one_after_the_other_and_other_feeds_do_not_wait() -> None:
    outcomes, asked, late = list[Outcome](), list[str](), asyncio.Future[Answer]()

    def answer(path: str) -> Answer | asyncio.Future[Answer]:
        asked.append(path)
        return late if path == "/feeds/slow" else TAKEN

    async with sender(outcomes, answer) as sent:
        sent.publish(batch(1, "slow"))
        sent.publish(batch(2, "slow"))
        sent.publish(batch(3, "quick"))
        await until_async(lambda: outcomes == [BatchPublished(3)])
        assert asked.count("/feeds/slow") == 1
        late.set_result(TAKEN)
        await until_async(lambda: outcomes == [BatchPublished(3), BatchPublished(1), BatchPublished(2)])


@pytest.mark.parametrize(
    ("answer", "code", "said", "wait"),
    [
        ((200, "<html>"), "unavailable", "answered with status 200, and not as one does", None),
        ((200, '{"accepted": "all"}'), "unavailable", "answered with status 200, and not as one does", None),
        ((502, "<html>"), "unavailable", "answered with status 502, and not as one does", None),
        ((401, '{"error": {"code": "unauthorized", "message": "whose?"}}'), "unavailable", "broker may not", None),
        ((403, '{"error": {"code": "forbidden", "message": "no"}}'), "unavailable", "tell whoever runs it", None),
        ((429, '{"error": {"code": "busy", "message": "full", "retry_after": 2.5}}'), "busy", "full", 2.5),
    ],
)
async def test_whatever_is_answered_the_batch_has_an_outcome_and_the_next_one_goes(
    answer: Answer, code: str, said: str, wait: float | None
) -> None:
    outcomes, answers = list[Outcome](), [answer, TAKEN]
    async with sender(outcomes, lambda path: answers.pop(0)) as sent:
        sent.publish(batch(1))
        sent.publish(batch(2))
        failed, published = await until_async(lambda: outcomes if len(outcomes) == 2 else None)
    assert isinstance(failed, BatchFailed)
    assert (failed.batch, failed.code, failed.retry_after) == (1, code, wait)
    assert said in failed.message
    assert published == BatchPublished(2)


async def test_a_data_cluster_that_is_not_there_is_told_to_the_publisher() -> None:
    outcomes = list[Outcome]()
    async with httpx.AsyncClient(base_url="http://127.0.0.1:1", trust_env=False, verify=False) as client:
        PublicationSender(client, outcomes.append).publish(batch(1))
        (failed,) = await until_async(lambda: outcomes)
    assert failed == BatchFailed(1, "unavailable", "the data cluster did not answer; publish this again later")


async def test_a_feed_that_cannot_be_one_is_asked_of_nobody() -> None:
    outcomes, answers = list[Outcome](), [TAKEN]
    async with sender(outcomes, lambda path: answers.pop()) as sent:
        sent.publish(batch(1, "../tokens"))
        (failed,) = await until_async(lambda: outcomes)
    assert isinstance(failed, BatchFailed)
    assert (failed.code, answers) == ("not-found", [TAKEN])


async def test_a_fault_of_our_own_is_an_outcome_as_well() -> None:
    outcomes, client = list[Outcome](), httpx.AsyncClient(base_url="http://127.0.0.1:1", trust_env=False, verify=False)
    await client.aclose()
    PublicationSender(client, outcomes.append).publish(batch(1))
    (failed,) = await until_async(lambda: outcomes)
    assert failed == BatchFailed(1, "internal", "a fault in the broker; publish this again later")


async def test_who_stops_waits_for_nobody() -> None:
    outcomes, never = list[Outcome](), asyncio.Future[Answer]()
    async with sender(outcomes, lambda path: never) as sent:
        sent.publish(batch(1))
        sent.publish(batch(2))
        await sent.stop()
    assert outcomes == []
