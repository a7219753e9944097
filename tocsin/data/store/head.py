"""The term of the data cluster: a number, higher at each start, by which late words of an earlier one are known."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.data.store.database import Database
from tocsin.errors import SupersededError


class SeenHead(NamedTuple):
    """The data cluster as those see it who stand by: its term, how often it has given a sign of life, and its end."""

    term: int
    beats: int
    ended: bool


class HeadRecord:
    """Who is the data cluster now, by its term. Only whoever has claimed the store begins one or raises it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self) -> int:
        """A term of which nobody has heard before; whoever has an earlier one is superseded from now on."""
        with self._database.changing() as connection:
            connection.execute("UPDATE head SET term = term + 1, beats = 0, ended = 0")
            (term,) = connection.execute("SELECT term FROM head").fetchone()
        return int(term)

    def raise_above(self, term: int, seen: int) -> int:
        """A new term in the place of ``term``, above one that was seen: the store is an older copy of itself."""
        with self._database.changing() as connection:
            raised = max(term, seen) + 1
            if not connection.execute("UPDATE head SET term = ? WHERE term = ?", (raised, term)).rowcount:
                raise _superseded_error(term)
        return raised

    def beat(self, term: int) -> None:
        """A sign of life, which waits for no other change; SupersededError if another has taken over."""
        with self._database.aside() as connection:
            if not connection.execute("UPDATE head SET beats = beats + 1 WHERE term = ?", (term,)).rowcount:
                raise _superseded_error(term)

    def end(self, term: int) -> None:
        """Whoever has this term has ended in order: the next one need not wait."""
        with self._database.changing() as connection:
            connection.execute("UPDATE head SET ended = 1 WHERE term = ?", (term,))

    def last_seen(self) -> SeenHead:
        """Whoever began last."""
        with self._database.looking() as connection:
            term, beats, ended = connection.execute("SELECT term, beats, ended FROM head").fetchone()
        return SeenHead(int(term), int(beats), bool(ended))


def _superseded_error(term: int) -> SupersededError:
    return SupersededError(f"another data cluster has taken over since term {term}: this one must end")
