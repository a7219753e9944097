"""The directory of a run: what was run, which cells are done, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from tocsin.errors import InvalidError
from tocsin.experiment.about import About
from tocsin.experiment.study import Study, StudyData
from tocsin.experiment.table import Row, append, file_of, read

_ABOUT = "run.json"


class Directory:
    """A run's files. Rows of a cell that was not finished are not its rows: they go when the run is taken up again.

    What can go wrong: the directory cannot be made or written, is not empty and no run, or is the run of something
    else; each is an InvalidError that says so.
    """

    def __init__(self, path: Path, tables: Iterable[type[Row]]) -> None:
        self.path, self._tables = path, tuple(tables)

    @classmethod
    def open(cls, path: Path, study: Study, about: About) -> Directory:
        """A new run, or one of the same experiment with the same settings, to go on with."""
        directory = cls(path, study.tables)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidError(f"{path} cannot be made: {error.strerror}; give --out another directory") from None
        if not directory._file.exists():
            if any(path.iterdir()):
                raise InvalidError(f"{path} has files in it and is no run of an experiment; give --out another one")
            directory._write(about)
            return directory
        directory._continue(about)
        return directory

    @property
    def about(self) -> About:
        """What was run."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=About)
        except (OSError, msgspec.MsgspecError):
            raise InvalidError(f"{self.path} is no run of an experiment: it has no readable {_ABOUT}") from None

    def add(self, cell: str, rows: Iterable[Row], seconds: float) -> None:
        """Keeps the rows of a cell, which is then done."""
        sorted_ = list(rows)
        for kind in self._tables:
            own = [row for row in sorted_ if type(row) is kind]
            if own:
                append(self.path / file_of(kind), kind, cell, own)
        about = self.about
        about.done.append(cell)
        about.seconds += seconds
        self._write(about)

    def data(self) -> StudyData:
        """The rows of all cells that are done."""
        return StudyData({kind: [row for _, row in rows] for kind, rows in self._finished_rows().items()})

    @property
    def _file(self) -> Path:
        return self.path / _ABOUT

    def _finished_rows(self) -> Mapping[type[Row], list[tuple[str, Row]]]:
        done = set(self.about.done)
        return {
            kind: [(cell, row) for cell, row in read(self.path / file_of(kind), kind) if cell in done]
            for kind in self._tables
        }

    def _continue(self, about: About) -> None:
        for what, was, now in _differences(self.about, about):
            raise InvalidError(f"{self.path} was run with {what} {was}, not {now}; give --out another directory")
        for kind, rows in self._finished_rows().items():
            path = self.path / file_of(kind)
            path.unlink(missing_ok=True)
            for cell, row in rows:
                append(path, kind, cell, [row])

    def _write(self, about: About) -> None:
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")
        part.replace(self._file)


def _differences(earlier: About, about: About) -> Iterator[tuple[str, object, object]]:
    """What makes two runs different ones: its name, and what it was and is."""
    for what in ("experiment", "version"):
        if (was := getattr(earlier, what)) != (now := getattr(about, what)):
            yield f"the {what}", was, now
    for name in earlier.settings | about.settings:
        if (was := earlier.settings.get(name)) != (now := about.settings.get(name)):
            yield name, was, now
