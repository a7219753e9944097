from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.connection import RemoteServer
from tocsin.cli.publisher import FeedPublisher, PublishPace, PublishSummary, batches
from tocsin.cli.records import SourceRecord
from tocsin.errors import TocsinError
from tocsin.model.messages import Published, Refusal

ACCEPTED = httpx.Response(200, json={"accepted": 1, "refused": []})
BATCH = [SourceRecord(1, b'{"id":"1"}')]


def busy(seconds: float) -> httpx.Response:
    return httpx.Response(429, json={"error": {"code": "busy", "message": "full", "retry_after": seconds}})


def refusing(status: int) -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": "x", "message": f"status {status}"}})


Answer = httpx.Response | Exception


class Answers:
    """A server that gives these answers in turn, the last of them for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.requests = list(answers), 0
        self.sleeps: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def publisher(
        self, patience: float = 60, waiting: Callable[[str, str], None] = lambda _, __: None
    ) -> FeedPublisher:
        server = RemoteServer("http://tocsin", None, httpx.MockTransport(self))
        return FeedPublisher(server, "f", joined=False, patience=patience, sleep=self.sleeps.append, waiting=waiting)


def test_a_busy_server_is_asked_again_when_it_said() -> None:
    answers = Answers(busy(0.25), busy(3), ACCEPTED)
    notes: list[tuple[str, str]] = []
    assert answers.publisher(waiting=lambda *note: notes.append(note)).send(BATCH).accepted == 1
    assert answers.sleeps == [0.25, 3]
    assert notes == [("full", "trying again for another 60 s"), ("full", "trying again for another 60 s")]


@pytest.mark.parametrize("passing", [httpx.ConnectError("refused"), httpx.ReadError(""), refusing(503), refusing(507)])
def test_a_server_that_is_away_is_asked_again_with_growing_waits(passing: Answer) -> None:
    answers = Answers(*[passing] * 6, ACCEPTED)
    assert answers.publisher().send(BATCH).accepted == 1
    assert answers.sleeps == [0.5, 1, 2, 4, 8, 10]


def test_patience_ends() -> None:
    answers = Answers(httpx.ConnectError("refused"))
    with pytest.raises(TocsinError, match="no answer from http://tocsin"):
        answers.publisher(patience=5).send(BATCH)
    assert sum(answers.sleeps) == pytest.approx(7.5)


@pytest.mark.parametrize("passing", [busy(2), refusing(507)])
def test_a_server_that_stays_busy_or_full_is_not_waited_for_without_end(passing: Answer) -> None:
    answers = Answers(passing)
    with pytest.raises(TocsinError):
        answers.publisher(patience=9).send(BATCH)
    assert 9 <= sum(answers.sleeps) < 20


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 500])
def test_what_will_not_pass_is_raised_at_once(status: int) -> None:
    answers = Answers(refusing(status))
    with pytest.raises(TocsinError, match=f"status {status}"):
        answers.publisher().send(BATCH)
    assert (answers.requests, answers.sleeps) == (1, [])


def test_something_that_is_no_data_cluster_is_told_as_such() -> None:
    answers = Answers(httpx.Response(404, text="<html>"))
    with pytest.raises(TocsinError, match="answered with status 404, but not as a server of Tocsin does"):
        answers.publisher(patience=0).send(BATCH)


@given(sizes=st.lists(st.integers(0, 40), max_size=40), most=st.integers(1, 7), most_bytes=st.integers(1, 100))
def test_batches_hold_every_record_once_within_their_bounds(sizes: list[int], most: int, most_bytes: int) -> None:
    records = [SourceRecord(line, b"x" * size) for line, size in enumerate(sizes)]
    made = list(batches(records, most, most_bytes))
    assert [record for batch in made for record in batch] == records
    assert all(1 <= len(batch) <= most for batch in made)
    assert all(len(batch) == 1 or sum(len(record.text) for record in batch) <= most_bytes for batch in made)


def test_the_summary_names_lines_of_the_file() -> None:
    summary = PublishSummary()
    summary.count([SourceRecord(4, b""), SourceRecord(9, b"")], Published(1, [Refusal(1, "bad")]))
    assert (summary.accepted, summary.refused, summary.reasons) == (1, 1, [(9, "bad")])


def test_the_pace_makes_up_for_what_was_slow_but_never_runs_ahead() -> None:
    pace = PublishPace(10)
    assert pace.wait(100.0) == 0
    pace.sent(5)
    assert pace.wait(100.1) == pytest.approx(0.4)
    pace.sent(5)
    assert pace.wait(102.0) == 0
