"""Strangers may register so many names an hour, from one address and in all."""

from __future__ import annotations

import pytest

from tocsin.coordinator.server.quota import Quota
from tocsin.errors import BusyError


class Hours:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now * 3600


@pytest.fixture
def hours() -> Hours:
    return Hours()


def refused(quota: Quota, address: str) -> float:
    with pytest.raises(BusyError, match="names an hour may be registered") as caught:
        quota.take(address)
    return caught.value.retry_after


def test_an_address_has_its_share_and_takes_nothing_from_others(hours: Hours) -> None:
    quota = Quota(2, 100, hours)
    for address in ("10.0.0.1", "10.0.0.2"):
        quota.take(address)
        quota.take(address)
        assert refused(quota, address) == 1800.0


def test_the_share_comes_back_little_by_little(hours: Hours) -> None:
    quota = Quota(2, 100, hours)
    quota.take("10.0.0.1")
    quota.take("10.0.0.1")
    hours.now = 0.5
    quota.take("10.0.0.1")
    refused(quota, "10.0.0.1")
    hours.now = 100.0
    quota.take("10.0.0.1")
    quota.take("10.0.0.1")
    refused(quota, "10.0.0.1")


def test_many_addresses_together_have_a_bound_too(hours: Hours) -> None:
    quota = Quota(10, 3, hours)
    for number in range(3):
        quota.take(f"10.0.0.{number}")
    assert refused(quota, "10.0.0.9") == 1200.0


@pytest.mark.parametrize(
    ("one", "other"), [("2001:db8::1", "2001:db8::ffff:1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("unknown", "unknown")]
)
def test_other_spellings_and_neighbours_of_an_address_are_the_same(hours: Hours, one: str, other: str) -> None:
    quota = Quota(1, 100, hours)
    quota.take(one)
    refused(quota, other)


def test_addresses_are_not_remembered_for_ever(hours: Hours) -> None:
    quota = Quota(1, 1_000_000, hours)
    for number in range(10_000):
        quota.take(str(number))
    hours.now = 2.0
    quota.take("last")
    quota.take("0")
