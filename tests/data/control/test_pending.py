from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.control.pending import Pending
from tocsin.model.control import Behind, Changed, Dropped, Executed, Failing, Notice


def taken(pending: Pending) -> list[Notice]:
    notices = []
    while notice := pending.take():
        notices.append(notice)
    return notices


def test_notices_within_the_bound_come_out_as_they_went_in() -> None:
    pending, notices = Pending(100), [Executed("A", 1, [1, 2]), Executed("B", 1, []), Executed("A", 2, [1])]
    for notice in notices:
        pending.add(notice)
    assert taken(pending) == notices
    assert not pending


def test_too_many_are_folded_into_one_range_per_channel() -> None:
    pending = Pending(6)
    for notice in (Executed("A", 4, [1, 2]), Executed("B", 9, []), Executed("A", 5, [1, 2])):
        pending.add(notice)
    assert taken(pending) == [Behind("A", 4, 5), Behind("B", 9, 9)]


def test_a_range_grows_until_it_is_taken_and_then_all_is_as_before() -> None:
    pending = Pending(2)
    pending.add(Executed("A", 1, [1, 2, 3]))
    pending.add(Executed("A", 2, []))
    assert taken(pending) == [Behind("A", 1, 2)]
    pending.add(Executed("A", 3, [1]))
    assert taken(pending) == [Executed("A", 3, [1])]


def test_a_range_that_comes_in_takes_in_what_waits_of_its_channel_and_what_follows() -> None:
    pending = Pending(100)
    pending.add(Executed("A", 1, [7]))
    pending.add(Behind("A", 2, 3))
    pending.add(Executed("B", 1, [7]))
    pending.add(Executed("A", 4, [7]))
    assert taken(pending) == [Behind("A", 1, 4), Executed("B", 1, [7])]


steps = st.lists(
    st.one_of(st.none(), st.tuples(st.sampled_from("ABC"), st.lists(st.integers(0, 9), max_size=5))), max_size=60
)


@given(steps=steps, most=st.integers(0, 12))
def test_no_execution_is_lost_repeated_or_out_of_order_in_its_channel(
    steps: list[tuple[str, list[int]] | None], most: int
) -> None:
    pending = Pending(most)
    happened: dict[str, int] = dict.fromkeys("ABC", 0)
    told: dict[str, list[int]] = {name: [] for name in "ABC"}

    def take() -> None:
        match pending.take():
            case Executed(channel=channel, execution=execution):
                told[channel].append(execution)
            case Behind(channel=channel, first=first, last=last):
                told[channel].extend(range(first, last + 1))

    for step in steps:
        if step is None:
            take()
        else:
            channel, bes = step
            happened[channel] += 1
            pending.add(Executed(channel, happened[channel], bes))
        assert pending.size <= most + len(happened)
    while pending:
        take()
    assert told == {name: list(range(1, count + 1)) for name, count in happened.items()}


def test_what_fails_is_told_after_all_else_and_in_bounded_space() -> None:
    pending = Pending()
    for number in range(2000):
        pending.add(Failing("A", [number], "division by zero"))
    pending.add(Executed("A", 1, [1]))
    notices = taken(pending)
    assert notices[0] == Executed("A", 1, [1])
    assert len(notices) == 1001
    assert not pending


def test_what_fails_for_very_many_is_told_in_parts_and_to_no_more_than_may_wait() -> None:
    pending = Pending(25_000)
    pending.add(Failing("A", list(range(20_000)), "it fails"))
    pending.add(Failing("A", list(range(20_000, 40_000)), "it fails"))
    notices = [notice.bes for notice in taken(pending) if isinstance(notice, Failing)]
    assert [len(bes) for bes in notices] == [10_000, 10_000, 5_000]
    assert [be for bes in notices for be in bes] == list(range(25_000))


def test_of_a_channel_that_is_dropped_nothing_else_waits_and_each_drop_is_told() -> None:
    pending = Pending(2)
    pending.add(Executed("A", 1, [1, 2, 3]))
    for channel in "AB":
        pending.add(Changed(channel))
        pending.add(Failing(channel, [1], "division by zero"))
    pending.add(Dropped("A", "first"))
    pending.add(Executed("A", 1, [4]))
    pending.add(Dropped("A", "second"))
    assert taken(pending) == [
        Changed("B"),
        Dropped("A", "first"),
        Dropped("A", "second"),
        Failing("B", [1], "division by zero"),
    ]
    assert pending.size == 0


def test_a_drop_is_never_folded_into_what_the_next_channel_of_the_name_has_found() -> None:
    pending = Pending(2)
    pending.add(Dropped("A", "first"))
    for execution in (1, 2):
        pending.add(Executed("A", execution, [1, 2], "second"))
    assert taken(pending) == [Behind("A", 1, 2, "second"), Dropped("A", "first")]
