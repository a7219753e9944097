"""Dead letters: what an execution sets aside is there once, however often it is attempted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tocsin.data.channels.letters import DeadLetters, Letter
from tocsin.data.lake.directory import DirectoryFolder

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def written(letters: DeadLetters) -> list[tuple[int, int]]:
    return sorted((row["execution"], row["subscription"]) for row in letters.read("c").to_pylist())


def test_a_second_attempt_takes_the_place_of_the_first_also_after_a_restart(tmp_path: Path) -> None:
    letters = DeadLetters(DirectoryFolder(tmp_path))
    for execution, subscription in ((1, 7), (2, 8), (2, 9)):
        letters.write("c", execution, [Letter("Reports", "{}", subscription, "why")], NOW)
    assert written(letters) == [(1, 7), (2, 9)]
    letters = DeadLetters(DirectoryFolder(tmp_path))
    letters.write("c", 2, [Letter("Reports", "{}", 3, "why"), Letter("Reports", "{}", 4, "why")], NOW)
    assert written(letters) == [(1, 7), (2, 3), (2, 4)]
    letters.write("c", 3, [Letter("Reports", "{}", 5, "why")], NOW)
    assert letters.count("c") == 4
