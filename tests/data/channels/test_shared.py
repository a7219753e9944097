"""Nodes are told what has changed, and what they have found counts only while it is what an execution would find."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from tests.data.channels.sharing import TellingSite, match_of
from tests.waiting import until
from tocsin.data.channels import shared as module
from tocsin.data.channels.arrival import OvertakenError
from tocsin.data.channels.matches import NodeMatch
from tocsin.data.compiler.check import Compiled
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.store import Store


@pytest.fixture
def site(tmp_path: Path) -> Iterator[TellingSite]:
    with Store(tmp_path) as store:
        yield TellingSite(tmp_path, store)


@pytest.fixture
def liked(site: TellingSite) -> Compiled:
    """A channel that reads People as a whole, with a subscription, of which nodes were told."""
    compiled = site.define("Liked", ["People"])
    site.subscribe("Liked", "fire")
    site.look()
    return compiled


def refused(site: TellingSite, compiled: Compiled, match: NodeMatch) -> None:
    with pytest.raises(OvertakenError):
        site.shared.require(compiled, [match])


def test_what_was_matched_with_what_is_there_now_holds(site: TellingSite, liked: Compiled) -> None:
    [told] = site.line.told
    site.shared.require(liked, [match_of(told), match_of(told)])
    site.shared.require(liked, [])


def test_what_bears_no_tag_of_ours_does_not_hold(site: TellingSite, liked: Compiled) -> None:
    [told] = site.line.told
    refused(site, liked, match_of(msgspec.structs.replace(told, tag="6.1")))
    other = site.define("Other")
    site.subscribe("Other", "fire")
    site.look()
    refused(site, other, match_of(told))


@pytest.mark.parametrize("change", ["subscribed", "left", "set aside", "tried again", "redefined"])
def test_what_was_matched_for_others_does_not_hold(site: TellingSite, liked: Compiled, change: str) -> None:
    [first, second] = site.subscribe("Liked", "flood", "storm")
    if change == "tried again":
        site.set_aside("Liked", first)
    site.look()
    match = match_of(site.line.told[-1])
    site.shared.require(liked, [match])
    match change:
        case "subscribed":
            site.subscribe("Liked", "quake")
        case "left":
            site.subscriptions.detach("b", [second])
        case "set aside":
            site.set_aside("Liked", first)
        case "tried again":
            site.store.set_aside.clear("Liked")
        case "redefined":
            liked = site.define("Liked", ["People"], "SELECT 2")
    refused(site, liked, match)
    # One of several is enough,
    with pytest.raises(OvertakenError, match="have changed"):
        site.shared.require(liked, [match, match])
    # and what is told anew holds.
    site.look()
    site.shared.require(liked, [match_of(site.line.told[-1])])
    refused(site, liked, match)


def test_what_was_begun_before_a_dataset_changed_holds_and_what_was_begun_after_does_not(
    site: TellingSite, liked: Compiled
) -> None:
    [told] = site.line.told
    before = match_of(told)
    # The datasets were seen to have nothing newer after that.
    site.look()
    site.change("People")
    after = match_of(told)
    site.shared.require(liked, [before])
    refused(site, liked, after)
    # Also when the dataset has changed again, and nodes know better.
    site.look()
    site.change("People")
    site.shared.require(liked, [before])
    refused(site, liked, after)


def test_a_change_counts_from_when_it_can_be_read_and_not_from_when_it_is_told_of(
    site: TellingSite, liked: Compiled
) -> None:
    [told] = site.line.told
    before = match_of(told)
    site.look()
    site.change("People", told=False)
    between = match_of(told)
    site.shared.require(liked, [before])
    refused(site, liked, between)
    site.shared.committed("People")
    site.shared.require(liked, [before])
    refused(site, liked, between)


def test_who_is_told_of_a_change_before_the_channels_are_is_not_outdated_by_it(
    site: TellingSite, liked: Compiled
) -> None:
    site.change("People", told=False)
    site.look()
    site.shared.committed("People")
    site.shared.require(liked, [match_of(site.line.told[-1])])


def test_what_changes_while_it_is_told_outdates_it_at_once(site: TellingSite, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = site.define("Liked", ["People"])
    site.subscribe("Liked", "fire")
    put = site.shared._put

    def put_and_change(name: str, rows: pa.Table) -> str:
        site.change("People")
        return put(name, rows)

    monkeypatch.setattr(site.shared, "_put", put_and_change)
    site.look()
    refused(site, compiled, match_of(site.line.told[-1]))


def test_the_dataset_that_nodes_fill_may_change_at_any_time(site: TellingSite) -> None:
    compiled = site.define("OfType")
    site.subscribe("OfType", "fire")
    site.look()
    site.change("Reports")
    site.look()
    [told] = site.line.told
    site.shared.require(compiled, [match_of(told)])


def test_nodes_are_told_once_of_what_does_not_change_and_anew_of_what_does(site: TellingSite, liked: Compiled) -> None:
    for _ in range(3):
        site.look()
    assert len(site.line.told) == 1
    site.change("People")
    site.look()
    first, second = site.line.told
    assert first.tag != second.tag
    assert second.subscriptions == first.subscriptions
    assert [each.files for each in second.whole] == [site.tables["People"].snapshot.paths()]
    site.subscribe("Liked", "flood")
    site.look()
    assert site.line.told[-1].subscriptions.generation != second.subscriptions.generation


def test_who_is_set_aside_is_among_neither_those_who_came_nor_those_who_stay(site: TellingSite) -> None:
    site.define("OfType")
    [old, older] = site.subscribe("OfType", "fire", "flood")
    site.subscriptions.rebase("OfType")
    [new, newer] = site.subscribe("OfType", "storm", "quake")
    site.set_aside("OfType", old, new)
    site.look()
    told = site.line.told[-1].subscriptions
    assert told.base is not None
    assert [row["__be"] for row in site.told_rows(told.added)] == [newer]
    assert {row["__be"] for row in site.told_rows(told.removed)} == {old, new}
    assert older not in {row["__be"] for row in site.told_rows(told.removed)}


def test_without_a_base_nobody_need_be_removed(site: TellingSite) -> None:
    site.define("OfType")
    [first, second] = site.subscribe("OfType", "fire", "flood")
    site.set_aside("OfType", first)
    site.look()
    told = site.line.told[-1].subscriptions
    assert (told.base, told.removed) == (None, "")
    assert [row["__be"] for row in site.told_rows(told.added)] == [second]


def test_three_tellings_are_kept_with_their_files_and_no_more(site: TellingSite) -> None:
    compiled = site.define("OfType")
    for wanted in "abcde":
        site.subscribe("OfType", wanted)
        site.look()
    kept = [telling.channel for telling in site.tellings("OfType")]
    assert kept == site.line.told[-3:]
    assert site.told_files() == {channel.subscriptions.added for channel in kept}
    refused(site, compiled, match_of(site.line.told[0]))


def test_files_that_a_kept_telling_shares_stay(site: TellingSite, liked: Compiled) -> None:
    for _ in range(5):
        site.change("People")
        site.look()
    assert site.told_files() == {site.line.told[0].subscriptions.added}


def test_a_channel_that_nodes_are_not_to_match_any_more_is_withdrawn(site: TellingSite, liked: Compiled) -> None:
    [told] = site.line.told
    site.shared.look(site.channels.values(), lambda _: False)
    assert site.line.withdrawn == ["Liked"]
    assert site.told_files() == set()
    refused(site, liked, match_of(told))
    site.look()
    assert len(site.line.told) == 2


@pytest.mark.parametrize("reason", ["dropped", "nobody subscribes", "not shared", "no feed of nodes"])
def test_only_what_can_be_matched_is_told(site: TellingSite, liked: Compiled, reason: str) -> None:
    match reason:
        case "dropped":
            del site.channels["Liked"]
        case "nobody subscribes":
            site.subscriptions.leave("b")
        case "not shared":
            site.channels["Liked"] = msgspec.structs.replace(liked, parallel=False)
        case "no feed of nodes":
            site.line.filled.clear()
    site.look()
    assert (len(site.line.told), site.line.withdrawn) == (1, ["Liked"])


def test_a_disk_that_refuses_withdraws_the_channel_until_it_does_not(
    site: TellingSite, liked: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = site.define("Other")
    site.subscribe("Other", "fire")
    site.look()
    site.subscribe("Liked", "flood")
    with monkeypatch.context() as patched:

        def refuse(self: DirectoryFolder, name: str, content: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(DirectoryFolder, "write", refuse)
        site.look()
    assert site.line.withdrawn == ["Liked"]
    site.shared.require(other, [match_of(site.tellings("Other")[-1].channel)])
    site.look()
    site.shared.require(liked, [match_of(site.line.told[-1])])


def test_a_channel_whose_description_is_too_long_is_the_heads(
    site: TellingSite, liked: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", len(msgspec.json.encode(site.line.told[0])) + 10)
    for _ in range(5):
        site.change("People")
    site.look()
    assert (len(site.line.told), site.line.withdrawn, site.told_files()) == (1, ["Liked"], set())


def test_so_many_channels_are_told_of_and_no_more(site: TellingSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHANNELS", 2)
    for name in ("C", "B", "A"):
        site.define(name)
        site.subscribe(name, "fire")
    site.look()
    assert [channel.name for channel in site.line.told] == ["A", "B"]


def test_a_new_head_begins_with_nothing_and_tells_by_itself(site: TellingSite) -> None:
    site.define("Liked", ["People"])
    site.subscribe("Liked", "fire")
    site.shared._folder.write("1-1-added.parquet", b"left by a head before")
    site.shared.start(lambda: list(site.channels.values()), lambda _: True)
    try:
        until(lambda: len(site.line.told) == 1)
        assert site.told_files() == {site.line.told[0].subscriptions.added}
        site.change("People")
        until(lambda: len(site.line.told) == 2)
        assert [channel.tag.split(".")[0] for channel in site.line.told] == ["7", "7"]
    finally:
        site.shared.stop()
