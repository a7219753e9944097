"""Records travel in batches, are kept until answered, and every one has its answer."""

from __future__ import annotations

from tests.client.driving import Program, asked, every, only, sent, welcome
from tocsin.client.core.actions import Action, Open, Published, RequestRefused
from tocsin.client.core.events import Lost, Opened, Publish
from tocsin.client.rules import Rules
from tocsin.model.messages import Refusal
from tocsin.model.subscriber import Error
from tocsin.model.subscriber import Publish as PublishRequest
from tocsin.model.subscriber import Published as PublishedAnswer


def publish(program: Program, ref: int, *records: bytes, feed: str = "places") -> list[Action]:
    return program.do(Publish(ref, feed, records))


def texts(request: PublishRequest) -> list[bytes]:
    return [bytes(record) for record in request.records]


def test_records_of_a_short_while_travel_together() -> None:
    program = Program(Rules(batch_seconds=0.5))
    program.serve()
    publish(program, 7, b"{}")
    before = program.now
    assert publish(program, 1, b'{"a":1}', b'{"a":2}') == []
    program.now += 0.2
    assert publish(program, 2, b'{"a":3}') == []
    request = asked(program.wait(), PublishRequest)
    assert (request.feed, texts(request)) == ("places", [b'{"a":1}', b'{"a":2}', b'{"a":3}'])
    assert program.now == before + 0.5
    assert program.say(1, PublishedAnswer(request.id, 3)) == [Published(1, 2, []), Published(2, 1, [])]


def test_who_publishes_now_and_then_does_not_wait_for_company() -> None:
    program = Program(Rules(batch_seconds=0.5))
    program.serve()
    for number in range(3):
        request = asked(publish(program, number, b"[%d]" % number), PublishRequest)
        assert texts(request) == [b"[%d]" % number]
        program.say(1, PublishedAnswer(request.id, 1))
        program.now += 0.5
    assert program.core.unanswered_bytes == 0


def test_who_publishes_again_at_once_gathers_even_when_all_is_answered() -> None:
    program = Program(Rules(batch_seconds=0.5))
    program.serve()
    first = asked(publish(program, 1, b"1"), PublishRequest)
    program.say(1, PublishedAnswer(first.id, 1))
    assert publish(program, 2, b"2") == publish(program, 3, b"3") == []
    assert texts(asked(program.wait(), PublishRequest)) == [b"2", b"3"]


def test_feeds_do_not_mix() -> None:
    program = Program()
    program.serve()
    publish(program, 7, b"{}")
    publish(program, 1, b"{}", feed="places")
    publish(program, 2, b"{}", feed="reports")
    assert {request.feed for request in sent(program.wait(), PublishRequest)} == {"places", "reports"}


def test_a_full_batch_goes_at_once() -> None:
    program = Program(Rules(batch_records=2))
    program.serve()
    assert len(asked(publish(program, 1, b"1", b"2", b"3"), PublishRequest).records) == 2


def test_a_batch_has_no_more_bytes_than_allowed() -> None:
    program = Program(Rules(batch_bytes=8))
    program.serve()
    publish(program, 1, b"12345", b"12345", b"12345")
    program.wait()
    assert texts(asked(program.actions, PublishRequest)) == [b"12345"]


def test_refused_records_are_told_by_their_place_in_the_call() -> None:
    program = Program()
    program.serve()
    publish(program, 7, b"{}")
    publish(program, 1, b'{"a":1}')
    publish(program, 2, b'{"a":2}', b'{"a":3}')
    request = asked(program.wait(), PublishRequest)
    actions = program.say(1, PublishedAnswer(request.id, 2, [Refusal(2, "no a")]))
    assert actions == [Published(1, 1, []), Published(2, 1, [Refusal(1, "no a")])]


def test_a_record_that_is_no_json_or_too_large_is_refused_and_the_others_go() -> None:
    program = Program(Rules(batch_bytes=10))
    program.serve()
    request = asked(publish(program, 1, b"{", b"7", b'"123456789"'), PublishRequest)
    assert texts(request) == [b"7"]
    published = only(program.say(1, PublishedAnswer(request.id, 1)), Published)
    assert published.accepted == 1
    assert [refusal.index for refusal in published.refused] == [0, 2]
    assert published.refused[1].reason == "record of 11 bytes; at most 10 are sent"


def test_a_call_with_nothing_to_send_is_answered_at_once() -> None:
    program = Program()
    assert publish(program, 1) == [Published(1, 0, [])]
    assert len(only(publish(program, 2, b"}"), Published).refused) == 1


def test_what_has_no_answer_is_sent_again_under_the_same_id() -> None:
    program = Program()
    program.serve()
    request = asked(publish(program, 1, b"1"), PublishRequest)
    program.do(Lost(1))
    opened = only(program.wait(), Open).connection
    program.do(Opened(opened))
    assert asked(program.say(opened, welcome()), PublishRequest) == request
    assert program.say(opened, PublishedAnswer(request.id, 1)) == [Published(1, 1, [])]
    assert program.say(opened, PublishedAnswer(request.id, 1)) == []


def test_a_busy_feed_gets_the_batch_later() -> None:
    program = Program()
    program.serve()
    request = asked(publish(program, 1, b"1"), PublishRequest)
    assert program.say(1, Error("busy", "full", request.id, 2.5)) == []
    before = program.now
    assert asked(program.wait(), PublishRequest) == request
    assert program.now == before + 2.5


def test_a_feed_that_is_not_there_refuses_each_record() -> None:
    program = Program()
    program.serve()
    request = asked(publish(program, 1, b"1", b"2"), PublishRequest)
    actions = program.say(1, Error("not-found", "no such feed", request.id))
    assert actions == [Published(1, 0, [Refusal(0, "no such feed"), Refusal(1, "no such feed")])]


def test_memory_is_bounded_while_nothing_is_answered() -> None:
    program = Program(Rules(kept_bytes=10))
    assert every(publish(program, 1, b"123456"), RequestRefused) == []
    assert only(publish(program, 2, b"123456"), RequestRefused).code == "busy"
    assert program.core.unanswered_bytes == 6
    assert every(publish(program, 3, b"1234"), RequestRefused) == []


def test_what_was_published_before_the_connection_goes_out_with_it() -> None:
    program = Program()
    publish(program, 1, b"1")
    program.now += 10.0
    program.serve()
    assert texts(asked(program.actions, PublishRequest)) == [b"1"]
