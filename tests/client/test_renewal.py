"""Logging in again at the same broker."""

from __future__ import annotations

from random import Random

from tocsin.client.core.actions import ConnectionState
from tocsin.client.core.connector import Connector
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Code


def test_a_late_login_that_replaces_the_connection_after_next_is_known_to_be_ones_own() -> None:
    connection, rules = Connector(Rules(), Random(0)), Rules()
    connection.start(0.0)
    connection.found(0.0, "ws://b")
    assert connection.opened(1)
    connection.welcomed(0.0, 1)
    connection.renew(1.0)
    assert connection.opened(2)
    connection.tick(1.0 + rules.login_seconds)
    connection.renew(12.0)
    assert connection.opened(3)
    connection.lost(12.1, 1, Code.REPLACED)
    connection.welcomed(12.2, 3)
    connection.lost(12.3, 3, Code.REPLACED)
    assert connection.state is ConnectionState.WAITING
