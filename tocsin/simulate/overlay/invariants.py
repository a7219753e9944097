"""What must hold in an overlay in the end, whatever happened."""

from __future__ import annotations

from collections import Counter

from tocsin.content.language import parse
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.messages import Routed
from tocsin.simulate.overlay.clients import Album
from tocsin.simulate.overlay.system import OverlaySystem


def broken(system: OverlaySystem) -> list[str]:
    """What does not hold, as sentences; everybody must have had the time to catch up."""
    wrong = [text for name in system.publishers for text in _published(system, name)]
    wrong += [text for album in system.albums.values() for text in _notes(system, album)]
    wrong += _seats(system)
    return wrong + _interests(system) + _sessions(system)


def _published(system: OverlaySystem, name: str) -> list[str]:
    """Everything that a publisher published is in a head's log once, in its order."""
    publisher = system.publishers[name]
    logged = [each.content for log in system.published.values() for each in log if each.publisher == name]
    if logged == publisher.published:
        return []
    return [f"{name} published {len(publisher.published)}, and {len(logged)} are logged, or in another order"]


def _notes(system: OverlaySystem, album: Album) -> list[str]:
    """Of each head somebody had everything that matches, once and in order, but for what it was told is gone."""
    wrong = [text for head, log in system.published.items() for text in _of_head(system, album, head, log)]
    if album.given_up:
        wrong.append(f"{album.name} gave up: {album.given_up}")
    return wrong


def _of_head(system: OverlaySystem, album: Album, head: str, log: list[Routed]) -> list[str]:
    had = [note.offset for note in album.notes if note.head == head]
    if head not in album.began:
        return [f"{album.name} never began with {head}"] + ([f"and had {had}"] if had else [])
    gone = {offset for gap in album.gaps if gap.head == head for offset in range(gap.first, gap.last + 1)}
    filter, began = parse(album.where), album.began[head]
    due = [each.offset for each in log if each.offset > began and filter.matches(each.content)]
    wrong = []
    if had != (expected := [offset for offset in due if offset not in gone]):
        lost, twice = sorted(set(expected) - set(had))[:5], [each for each, times in Counter(had).items() if times > 1]
        strange = sorted(set(had) - set(expected))[:5]
        wrong.append(f"{album.name} of {head} after {began}: lost {lost}, twice {twice[:5]}, strange {strange}")
    if gone and max(gone) >= system.heads[head].core.log.oldest:
        wrong.append(f"{album.name} was told that {max(gone)} of {head} is gone, and it is not")
    return wrong


def _seats(system: OverlaySystem) -> list[str]:
    """Every subscriber that is online is on exactly one edge, and knows it."""
    wrong = []
    for name, process in system.subscribers.items():
        edges = [edge.host for edge in system.edges.values() if edge.core.subscriptions.get(name)]
        if edges != ([process.core.edge] if process.alive else []):
            wrong.append(f"{name} is on {edges}, and thinks it is on {process.core.edge if process.alive else None}")
    return wrong


def _interests(system: OverlaySystem) -> list[str]:
    """What is asked of every neighbour is the covering set of what is behind the one that asks."""
    wrong = []
    for host in [*system.heads.values(), *system.edges.values()]:
        for other in host.core.links.open:
            needed = {parse(each.where) for each in _behind(system, host.host, other)}
            minimal = {one for one in needed if not any(two.covers(one) for two in needed if two != one)}
            asked = set(host.core.links.publications.asked(other))
            heard = set(_core(system, other).links.publications.wanted(host.host))
            if not asked == heard == minimal:
                wrong.append(f"{host.host} asks {len(asked)} of {other}, which knows {len(heard)} of {len(minimal)}")
    return wrong


def _sessions(system: OverlaySystem) -> list[str]:
    """Nobody is in a session any more, and nobody counts another cluster's brokers among its own."""
    wrong = [f"edge {edge.host} is BUSY for ever" for edge in system.edges.values() if edge.core.surroundings.busy]
    wrong += [f"cluster {head.host} is BUSY for ever" for head in system.heads.values() if head.core.federation.busy]
    joined = {edge.host: edge.core.surroundings.joined for edge in system.edges.values()}
    return wrong + [f"edge {name} still hears {clusters}" for name, clusters in joined.items() if clusters]


def _core(system: OverlaySystem, name: str) -> Head | Edge:
    return (system.heads.get(name) or system.edges[name]).core


def _behind(system: OverlaySystem, broker: str, but: str) -> list[Album]:
    """The subscribers online on this side of a link."""
    waiting, seen = [broker], {but, broker}
    found: list[Album] = []
    while waiting:
        here = waiting.pop()
        if here in system.edges:
            found += [system.albums[held.subscriber] for held in system.edges[here].core.subscriptions.all]
        for other in _core(system, here).links.open:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return found
