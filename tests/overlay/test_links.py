"""What a broker knows of filters that came over a link, and how it asks for its own."""

from __future__ import annotations

import gc
from math import inf
from weakref import ref

from tocsin.content.language import parse
from tocsin.overlay.actions import SendLink
from tocsin.overlay.interests import OWN
from tocsin.overlay.links import MOST_FILTERS, Links, in_slices, read
from tocsin.overlay.messages import Change, Sync
from tocsin.overlay.post import Post


class Asking:
    """A broker's links, and what it says on them."""

    def __init__(self, linger_seconds: float = 0.0) -> None:
        self._post = Post()
        self.links = Links("b", self._post, linger_seconds)

    def at(self, now: float) -> None:
        """Time has passed."""
        self._post.now = now
        self.links.due(now)

    def said(self) -> list[tuple[str, Sync | Change]]:
        sent = [action for action in self._post.take() if isinstance(action, SendLink)]
        return [(each.broker, each.message) for each in sent if isinstance(each.message, Sync | Change)]


def test_a_filter_is_read_once_as_long_as_somebody_wants_it() -> None:
    filter = read("symbol = 'YHOO' and high > 40")
    assert read("symbol = 'YHOO' and high > 40") is filter


def test_what_nobody_wants_any_more_is_not_kept() -> None:
    gone = ref(read("symbol = 'IBM' and high > 40"))
    gc.collect()
    assert gone() is None


def test_many_filters_are_asked_for_in_pieces_and_dropped_with_the_last() -> None:
    asking, texts = Asking(), [f"high = {number}" for number in range(2 * MOST_FILTERS + 7)]
    asking.links.opened("down", is_head=False)
    asking.links.synced("down", Sync(texts, []))
    asking.said()
    asking.links.opened("up", is_head=True)
    (to, sync), *others = asking.said()
    assert isinstance(sync, Sync)
    assert (to, sync.publications) == ("up", texts[:MOST_FILTERS])
    assert [(to, len(change.add)) for to, change in others if isinstance(change, Change)] == [
        ("up", MOST_FILTERS),
        ("up", 7),
    ]
    asking.links.changed("down", Change(False, ["high exists"], []))
    ((_, dropping),) = asking.said()
    assert dropping == Change(False, ["high exists"], texts)
    asking.links.changed("down", Change(False, [], ["high exists"]))
    changes = [change for _, change in asking.said() if isinstance(change, Change)]
    assert [len(change.add) for change in changes] == [MOST_FILTERS, 7, MOST_FILTERS]
    # Until all of it is asked for, what covers it still is.
    assert [change.drop for change in changes] == [[], [], ["high exists"]]


def test_what_becomes_covered_lingers_at_neighbours_for_a_while() -> None:
    asking = Asking(30.0)
    asking.links.opened("up", is_head=True)
    assert asking.links.wake() == inf
    asking.links.want(parse("high > 5"))
    asking.at(10.0)
    asking.links.want(parse("high > 3"))
    asking.said()
    asking.at(asking.links.wake())
    assert asking.said() == []
    asking.at(asking.links.wake())
    assert asking.said() == [("up", Change(False, [], ["high > 5"]))]
    assert asking.links.wake() == inf


def test_an_edge_is_asked_for_control_messages_only() -> None:
    asking = Asking()
    asking.links.opened("edge", is_head=False)
    asking.links.opened("head", is_head=True)
    asking.said()
    asking.links.synced("head", Sync(["high > 3"], ["to = 'x'"]))
    assert asking.said() == [("edge", Change(True, ["to = 'x'"], []))]


def test_as_long_as_a_neighbour_asks_for_what_cannot_be_read_it_wants_everything() -> None:
    asking = Asking()
    links = asking.links
    links.opened("down", is_head=False)
    links.opened("up", is_head=True)
    asking.said()
    links.synced("down", Sync(["a ~ 1", "a > 1"], ["to ~ 'x'", "to = 'x'"]))
    assert links.publications.route({"b": 1.0}, OWN) == ["down"]
    assert links.control.route({"to": "x"}, OWN) == ["down"]
    assert links.unreadable == {"down": 1}
    # Of a head above, in words that it cannot read either.
    assert asking.said() == [("up", Change(False, [""], [])), ("up", Change(True, ["to = 'x'"], []))]
    links.changed("down", Change(False, [f"a = {'9' * 5000}", ""], ["a ~ 1"]))
    assert links.publications.route({"b": 1.0}, OWN) == ["down"]
    links.changed("down", Change(False, [], [f"a = {'9' * 5000}"]))
    assert links.publications.route({"b": 1.0}, OWN) == ["down"]
    assert links.unreadable == {}
    links.changed("down", Change(False, [], [""]))
    assert links.publications.route({"b": 1.0}, OWN) == []
    assert links.publications.route({"a": 2.0}, OWN) == ["down"]
    assert links.unreadable == {}
    assert asking.said() == [("up", Change(False, ["a > 1"], [""]))]


def test_a_neighbour_whose_filters_cannot_be_read_begins_anew_when_it_links_again() -> None:
    links = Asking().links
    links.opened("down", is_head=False)
    links.synced("down", Sync(["a ~ 1"], []))
    links.lost("down")
    links.changed("down", Change(False, ["a ~ 2"], []))
    assert links.unreadable == {}
    links.opened("down", is_head=False)
    links.synced("down", Sync(["a = 1"], []))
    assert links.publications.route({"b": 1.0}, OWN) == []


def test_what_asks_for_much_is_heard_in_slices_and_drops_last() -> None:
    texts = [f"high = {number}" for number in range(60)]
    sync, *changes = in_slices(Sync(texts, ["to = 'x'"]))
    assert isinstance(sync, Sync)
    assert sync.control == ["to = 'x'"]
    assert sync.publications + [text for each in changes if isinstance(each, Change) for text in each.add] == texts
    heard = [each for each in in_slices(Change(False, texts, texts[:40])) if isinstance(each, Change)]
    assert [text for each in heard for text in each.add] == texts
    assert [text for each in heard for text in each.drop] == texts[:40]
    assert [bool(each.drop) for each in heard] == sorted(bool(each.drop) for each in heard)
    assert all(len(each.add) + len(each.drop) <= 25 for each in heard)
    assert list(in_slices(Change(True, texts[:5], texts[:5]))) == [Change(True, texts[:5], texts[:5])]
