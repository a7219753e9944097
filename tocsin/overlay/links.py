"""A broker's links to its neighbours: what is wanted on them, and how control messages find their way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from tocsin.content.filter import AT_ONCE, Filter, quote
from tocsin.content.language import MOST_CANONICAL_TEXT, parse
from tocsin.errors import FilterError
from tocsin.overlay.interests import OWN, Difference, Interests
from tocsin.overlay.limits import FORGET_SECONDS
from tocsin.overlay.messages import Change, Control, FromLink, Sync
from tocsin.overlay.post import Post

MOST_FILTERS: Final = 500
"""Filters that are asked for in one message, so that a neighbour has time for others in between."""

_SLICE: Final = 10
"""Filters that are heard at once: those that take longest take about as long as so many hundred others."""

EVERYTHING: Final = Filter()
"""What is wanted in place of a filter that cannot be read: whoever asked for it looks through what comes."""

T = TypeVar("T")

# Those that somebody holds: what nobody wants any more takes no memory, whatever was asked for before.
_known: WeakValueDictionary[str, Filter] = WeakValueDictionary()


def read(text: str) -> Filter:
    """A filter as it came over a link: as ``str`` writes it. What is none is a :class:`FilterError`."""
    filter = _known.get(text)
    if filter is None:
        filter = _known[text] = parse(text, MOST_CANONICAL_TEXT)
    return filter


def address_filter(key: str, value: str) -> Filter:
    """The control messages with this value of an attribute: to whom they go, or of which cluster's load they tell."""
    return read(f"`{key}` = {quote(value)}")


class Links:
    """The links that stand, and two kinds of interests: in publications, and in control messages.

    What can go wrong: a link is lost. Then nothing is wanted on it until it stands again and the other broker has said
    what it wants, all of it; neighbours are asked for less meanwhile. Somebody wants what covers everything, and then
    does not, again and again: what has become covered is asked for during another ``linger_seconds``, or up to twice
    that, and routing goes by more than is needed meanwhile. A neighbour of another version asks for what cannot be read
    here: it is sent everything as long as it does, and what it asks of control messages in that way is left out.
    """

    def __init__(self, name: str, post: Post, linger_seconds: float = 0.0, at_once: int = AT_ONCE) -> None:
        self.publications, self.control = Interests(linger_seconds > 0, at_once), Interests()
        self._name, self._post = name, post
        self._linger_seconds, self._settle_at = linger_seconds, inf
        self._is_head: dict[str, bool] = {}
        self._unreadable: dict[str, set[str]] = {}
        self.want_control(address_filter("to", name))

    @property
    def open(self) -> list[str]:
        """The neighbours that there are links to."""
        return list(self._is_head)

    @property
    def heads(self) -> list[str]:
        """Those of them that are heads."""
        return [link for link, is_head in self._is_head.items() if is_head]

    @property
    def unreadable(self) -> dict[str, int]:
        """How many filters each neighbour asks for that cannot be read here, if it does. One that has such neighbours
        itself, and passes that on, does not count."""
        own = {link: texts - {str(EVERYTHING)} for link, texts in self._unreadable.items()}
        return {link: len(texts) for link, texts in own.items() if texts}

    def due(self, now: float) -> None:
        """Goes on with what takes long, and asks no more for what has been covered for long enough."""
        if self.publications.is_busy:
            self._ask(False, self.publications.go_on())
        elif self._settle_at <= now:
            self._settle_at = inf
            self._ask(False, self.publications.settle())

    def wake(self) -> float:
        """When there is something to do."""
        return self._post.now if self.publications.is_busy else self._settle_at

    def opened(self, link: str, is_head: bool) -> None:
        """A link stands."""
        self._is_head[link], self._unreadable[link] = is_head, set()
        # Publications come from heads only: nothing is asked of an edge.
        publications, control = self.publications.open(link, is_head), self.control.open(link)
        first, *others = _pieces(publications, MOST_FILTERS) or [[]]
        self._post.send(link, Sync(list(map(str, first)), list(map(str, control))))
        for each in others:
            self._post.send(link, Change(False, list(map(str, each)), []))

    def lost(self, link: str) -> None:
        """It does not any more."""
        if self._is_head.pop(link, None) is not None:
            del self._unreadable[link]
            self._ask(False, self.publications.close(link))
            self._ask(True, self.control.close(link))

    def synced(self, link: str, message: Sync) -> None:
        """A neighbour has said what it wants."""
        self._heard(False, link, message.publications, [])
        self._heard(True, link, message.control, [])

    def changed(self, link: str, message: Change) -> None:
        """A neighbour wants something else."""
        self._heard(message.control, link, message.add, message.drop)

    def want(self, filter: Filter) -> None:
        """The broker wants publications, too."""
        self._ask(False, self.publications.want(OWN, [filter], []))

    def give_up(self, filter: Filter) -> None:
        """It does not want them any more."""
        self._ask(False, self.publications.want(OWN, [], [filter]))

    def want_control(self, filter: Filter) -> None:
        """The broker wants control messages, too."""
        self._ask(True, self.control.want(OWN, [filter], []))

    def give_up_control(self, filter: Filter) -> None:
        """It does not want them any more."""
        self._ask(True, self.control.want(OWN, [], [filter]))

    def route(self, message: Control, sender: str = OWN) -> bool:
        """Passes a control message on; whether it is for this broker."""
        wanting = self.control.route(message.attributes, sender)
        for link in wanting:
            if link != OWN:
                self._post.send(link, message)
        return OWN in wanting

    def _heard(self, control: bool, link: str, add: list[str], drop: list[str]) -> None:
        if link not in self._is_head:
            return
        (more, unread), (less, dropped) = _read_all(add), _read_all(drop)
        if control:
            self._ask(True, self.control.want(link, more, less))
            return
        unreadable = self._unreadable[link]
        before, self._unreadable[link] = bool(unreadable), (unreadable | unread) - dropped
        after = bool(self._unreadable[link])
        more += [EVERYTHING] * (after > before)
        less += [EVERYTHING] * (before > after)
        self._ask(False, self.publications.want(link, more, less))

    def _ask(self, control: bool, changes: dict[str, Difference]) -> None:
        for link, (add, drop) in changes.items():
            if link in self._is_head:
                # In one message, if it is small: what takes the place of something dropped must not come later.
                first, *others = _pieces(add, MOST_FILTERS) or [[]]
                for each in others:
                    self._post.send(link, Change(control, list(map(str, each)), []))
                self._post.send(link, Change(control, list(map(str, first)), list(map(str, drop))))
        if not control:
            self._settle_later()

    def _settle_later(self) -> None:
        if self._settle_at == inf and not self.publications.is_settled:
            self._settle_at = self._post.now + self._linger_seconds


class LatestRequests:
    """What each broker has asked for last, so that what comes twice is answered once."""

    def __init__(self) -> None:
        self._requests: dict[str, tuple[str, float]] = {}

    def is_new(self, broker: str, id: str, now: float) -> bool:
        """Whether a broker asks for something that it has not asked for just before."""
        self._requests = {name: each for name, each in self._requests.items() if each[1] > now - FORGET_SECONDS}
        before, _ = self._requests.get(broker, ("", 0.0))
        self._requests[broker] = id, now
        return before != id


def _read_all(texts: Iterable[str]) -> tuple[list[Filter], set[str]]:
    """The filters, and what is none."""
    filters, unread = [], set()
    for text in texts:
        try:
            filters.append(read(text))
        except FilterError:
            unread.add(text)
    return filters, unread


def in_slices(message: FromLink) -> Iterator[FromLink]:
    """A message, or several that say the same with fewer filters each, so that a broker has time for others in between.
    What is dropped is dropped last, as what takes its place must not come later."""
    match message:
        case Sync(publications, control) if len(publications) > _SLICE:
            first, *others = _pieces(publications, _SLICE)
            yield Sync(first, control)
            yield from (Change(False, each, []) for each in others)
        case Change(control, add, drop) if len(add) + len(drop) > _SLICE:
            yield from (Change(control, each, []) for each in _pieces(add, _SLICE))
            yield from (Change(control, [], each) for each in _pieces(drop, _SLICE))
        case _:
            yield message


def _pieces(each: list[T], most: int) -> list[list[T]]:
    return [each[at : at + most] for at in range(0, len(each), most)]
