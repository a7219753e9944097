"""``tocsin balance`` on a running network: a plan is looked at, carried out, and brokers are drained."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.network import Network
from tests.cli.program import Program

pytestmark = pytest.mark.process


def test_a_plan_is_shown_with_its_reasons_and_moves_nobody(tocsin: Program, town: Network) -> None:
    town.populate(8)
    shown = tocsin("balance", "plan")
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert lines[0] == "join: to get their share: broker south"
    rows = {line.split()[0]: line.split() for line in lines if line}
    assert rows["broker"] == ["broker", "load", "before", "after", "leave", "come"]
    assert rows["north"][-2:] == rows["south"][-2:][::-1]
    assert lines[-1].endswith("subscribers would be moved; 'tocsin balance apply' does it.")
    assert [broker["subscribers"] for broker in town.status()["brokers"]] == [4, 4]
    assert json.loads(tocsin("balance", "plan", "--json").out)["moves"] > 0


def test_a_plan_is_carried_out(tocsin: Program, town: Network) -> None:
    town.populate(8)
    before = town.status()["cov"]
    shown = tocsin("balance", "apply")
    assert shown.out.rstrip().endswith("subscribers will be moved; 'tocsin top' shows how far it is.")
    assert town.status()["cov"] < before


def test_a_drained_broker_is_empty_and_serves_again(tocsin: Program, town: Network) -> None:
    town.populate(6)
    drained = tocsin("balance", "drain", "north", "--wait")
    assert drained.status == 0
    first, *meanwhile, last = drained.err.splitlines()
    assert first == "north is being emptied; 'tocsin balance undrain north' lets it serve again."
    assert all(line.startswith("waiting for the subscribers of north to move: ") for line in meanwhile)
    assert last == "north is empty."
    north, south = town.status()["brokers"]
    assert (north["state"], north["subscribers"], south["subscribers"]) == ("draining", 0, 6)
    assert tocsin("balance", "undrain", "north").err == "north gets subscribers again.\n"
    assert town.status()["brokers"][0]["state"] == "serving"


def test_who_waits_for_a_drain_is_told_that_there_is_no_other_broker(tocsin: Program, town: Network) -> None:
    town.populate(2)
    tocsin("balance", "drain", "south", "--wait")
    waiting = subprocess.Popen(
        [sys.executable, "-m", "tocsin", "balance", "drain", "north", "--wait"], stderr=subprocess.PIPE, text=True
    )
    assert waiting.stderr is not None
    try:
        assert "north is being emptied" in waiting.stderr.readline()
        assert waiting.stderr.readline().startswith("there is no other broker that north's 2 subscribers could go to; ")
        tocsin("balance", "undrain", "south")
        assert "north is empty." in waiting.stderr.read()
        assert waiting.wait(10) == 0
    finally:
        waiting.kill()
        waiting.wait()
        waiting.stderr.close()


def test_balancing_is_turned_off_and_on(tocsin: Program, town: Network) -> None:
    assert "no longer balances itself" in tocsin("balance", "off").err
    assert town.status()["balancing"] is False
    assert tocsin("balance", "on").err == "The network balances itself.\n"
    assert town.status()["balancing"] is True


def test_a_broker_that_does_not_exist_is_named_with_those_that_do(tocsin: Program, town: Network) -> None:
    refused = tocsin("balance", "drain", "nort")
    assert (refused.status, refused.err) == (1, "error: there is no broker 'nort'; there are north, south\n")
    assert tocsin("balance", "plan", "--token", "wrong").status == 1


def test_people_and_brokers_are_removed(tocsin: Program, town: Network) -> None:
    town.populate(2)
    refused = tocsin("remove", "broker", "south")
    assert refused.status == 1
    assert "empty it with 'tocsin balance drain south --wait'" in refused.err
    assert tocsin("remove", "user", "s0").err == "s0 is removed.\n"
    assert tocsin("remove", "user", "s0").err == "error: there is no subscriber 's0'\n"
    tocsin("balance", "drain", "south", "--wait")
    assert "south is removed; 'tocsin token sign south --role broker'" in tocsin("remove", "broker", "south").err
    assert town.status()["subscribers"] == 1
    mine = tocsin("remove", "me").err
    assert mine == "error: this token is no subscriber's; 'tocsin remove user NAME' removes another\n", "an operator's"
