"""What must hold in an overlay in the end, whatever happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

from tocsin.content.language import parse
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.simulate.overlay.clients import Album, Passage
from tocsin.simulate.overlay.disks import HeadDisk
from tocsin.simulate.overlay.system import OverlaySystem


def violations(system: OverlaySystem) -> list[str]:
    """What does not hold, as sentences; everybody must have had the time to catch up."""
    wrong = [text for name in system.publishers for text in _publications(system, name)]
    wrong += [text for album in system.albums.values() for text in _notes(system, album)]
    wrong += [text for name in system.disks for text in _remembered(system, name)]
    wrong += _seats(system) + [text for watch in system.watches for text in watch.wrong]
    wrong += [text for album in system.albums.values() for text in _refusals(album)]
    return wrong + _interests(system) + _sessions(system)


def _publications(system: OverlaySystem, name: str) -> list[str]:
    """Everything that a publisher published was stored once, in its order. What it did not know to be stored when its
    head lost its log may be stored again."""
    published, place, life = system.publishers[name].published, 0, 0
    for disk in system.disks.values():
        for number, publication in disk.stored:
            if publication.publisher != name:
                continue
            while life < number:
                life += 1
                confirmed = disk.lives[life].confirmed.get(name, 0)
                again = [each for each in range(confirmed, place) if published[each] == publication.content]
                place = again[0] if again else place
            if place >= len(published) or published[place] != publication.content:
                return [f"{name}: {publication} is stored, where number {place} of {len(published)} should be"]
            place += 1
    return [] if place == len(published) else [f"{name} published {len(published)}, and {place} are stored"]


def _remembered(system: OverlaySystem, head: str) -> list[str]:
    """A head gives no number twice, and remembers nobody for ever."""
    disk, wrong = system.disks[head], list[str]()
    last: dict[tuple[int, str], int] = {}
    for life, each in disk.stored:
        if each.sequence <= last.get((life, each.publisher), 0):
            wrong.append(f"{head} has given the number of {each} before")
        last[life, each.publisher] = each.sequence
    kept, latest = disk.kept, {each.publisher for each in disk.kept.publications}
    since = system.clock.now - 4 * system.limits.publisher_seconds
    for name, seen in kept.seen.items():
        if seen < since and name not in latest and not system.publishers[name].alive:
            wrong.append(f"{head} remembers {name} for ever")
    return wrong


def _notes(system: OverlaySystem, album: Album) -> list[str]:
    """Of each head somebody had everything that matches, once and in order, but for what it was told is gone."""
    wrong = [f"{album.name} of {head}: {text}" for head in system.disks for text in _of_head(system, album, head)]
    if album.given_up:
        wrong.append(f"{album.name} gave up: {album.given_up}")
    return wrong


def _of_head(system: OverlaySystem, album: Album, head: str) -> list[str]:
    passages, disk = album.passages.get(head), system.disks[head]
    if not passages:
        return ["never began"]
    wrong = [text for passage in passages for text in _passage(disk, album, passage)]
    wrong += [text for one, two in pairwise(passages) for text in _turn(disk, one, two)]
    if disk.begun[passages[-1].incarnation][0] != disk.life:
        wrong.append(f"it is still at {passages[-1].incarnation}, which is lost")
    gone = [gap.last for passage in passages for gap in passage.gaps if disk.begun[passage.incarnation][0] == disk.life]
    if any(last and last >= system.heads[head].core.log.oldest for last in gone):
        wrong.append(f"{gone} were told to be gone, and are not")
    return wrong


def _passage(disk: HeadDisk, album: Album, passage: Passage) -> list[str]:
    """Everything that matches under one incarnation, once and in order, but for what is gone."""
    life, _ = disk.begun[passage.incarnation]
    log, filter, had = disk.lives[life].log, parse(album.where), [note.offset for note in passage.notes]
    gone = {offset for gap in passage.gaps for offset in range(gap.first, (gap.last or 0) + 1)}
    due = [each.offset for each in log[passage.began : passage.left] if filter.matches(each.content)]
    if had == (expected := [offset for offset in due if offset not in gone]):
        return []
    lost, twice = sorted(set(expected) - set(had))[:5], [each for each, times in Counter(had).items() if times > 1]
    strange = sorted(set(had) - set(expected))[:5]
    return [f"{passage.incarnation} after {passage.began}: lost {lost}, twice {twice[:5]}, strange {strange}"]


def _turn(disk: HeadDisk, before: Passage, after: Passage) -> list[str]:
    """Whoever had more than the log has in common with what it was begins anew there, and is told so; nobody else."""
    left, common = before.left or 0, disk.common(before.incarnation, after.incarnation)
    wrong = []
    if after.began != max(0, min(left, common)):
        wrong.append(f"began at {after.began}, from {left} with {common} in common")
    if (before.lost is not None) != (left > common):
        wrong.append(f"was told {before.lost}, at {left} with {common} in common")
    return wrong


def _seats(system: OverlaySystem) -> list[str]:
    """Every subscriber that is online is on exactly one edge, and knows it."""
    wrong = []
    for name, process in system.subscribers.items():
        edges = [edge.host for edge in system.edges.values() if edge.core.subscriptions.get(name)]
        if edges != ([process.core.edge] if process.alive else []):
            wrong.append(f"{name} is on {edges}, and thinks it is on {process.core.edge if process.alive else None}")
    return wrong


def _refusals(album: Album) -> list[str]:
    """Whoever does not go is not sent to the same edge again, nor to a third one, while it is remembered."""
    asked = defaultdict[str, list[str]](list)
    for move in album.refused:
        # Before it the session's id has the incarnation of the edge that asks.
        asked[move.session.rpartition("-")[0]].append(move.edge)
    return [
        f"{album.name}, who does not go, was sent by {edge} to {to}"
        for edge, to in asked.items()
        if len(to) > min(2, len(set(to)))
    ]


def _interests(system: OverlaySystem) -> list[str]:
    """What is asked of every neighbour is the covering set of what is behind the one that asks; of an edge, nothing."""
    wrong = []
    for host in [*system.heads.values(), *system.edges.values()]:
        for other in host.core.links.open:
            behind = _behind(system, host.host, other) if other in system.heads else []
            needed = {parse(each.where) for each in behind}
            minimal = {one for one in needed if not any(two.covers(one) for two in needed if two != one)}
            asked = set(host.core.links.publications.asked_filters(other))
            heard = set(_core(system, other).links.publications.filters_of(host.host))
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
