"""Who may use a channel or a feed, and what is filled in."""

from __future__ import annotations

import pytest

from tocsin.errors import ForbiddenError
from tocsin.model.terms import Asker, Terms, admit, fill_in

ANN, OFFICER = Asker("ann"), Asker("officer", ("police", "night"))


def test_without_groups_any_subscriber_may() -> None:
    admit(Terms(), ANN, "channel C")


def test_one_common_group_is_enough() -> None:
    admit(Terms(groups=("fire", "police")), OFFICER, "channel C")


def test_who_is_in_none_of_the_groups_may_not() -> None:
    with pytest.raises(ForbiddenError, match="channel C is for the groups fire, and the token of officer names none"):
        admit(Terms(groups=("fire",)), OFFICER, "channel C")


def test_no_groups_at_all_is_nobody() -> None:
    with pytest.raises(ForbiddenError, match="feed f is not open to subscribers"):
        admit(Terms(groups=()), OFFICER, "feed f")


@pytest.mark.parametrize("given", [{}, {"user": None}, {"user": "ann"}])
def test_a_bound_value_is_the_name_in_the_token(given: dict[str, object]) -> None:
    assert fill_in(Terms(("user",)), "ann", given | {"event": "flood"}) == {"event": "flood", "user": "ann"}


@pytest.mark.parametrize("given", ["bob", "Ann", "ann ", "", 1, False, ["ann"], {"user": "ann"}])
def test_any_other_value_is_refused(given: object) -> None:
    with pytest.raises(ForbiddenError, match="'user' is always the name in the token, ann, and was given as "):
        fill_in(Terms(("user",)), "ann", {"user": given})


def test_another_spelling_of_a_bound_parameter_binds_nothing_and_is_no_way_round() -> None:
    assert fill_in(Terms(("user",)), "ann", {"USER": "bob"}) == {"USER": "bob", "user": "ann"}
