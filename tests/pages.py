"""The documentation as tests read it: its pages, and the fenced blocks and code words in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
TUTORIAL: Final = ROOT / "docs" / "tutorial.md"
PAGES: Final = [README, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]+)`")


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [text for named, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if named == language]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def words(page: Path) -> list[str]:
    """What the prose marks as code."""
    return _CODE.findall(prose(page))


def sessions(page: Path) -> list[tuple[str, str]]:
    """What a reader is to type into a shell, continued lines joined, and what the page shows in answer."""
    typed: list[tuple[str, str]] = []
    for line in "".join(blocks(page, "console")).splitlines():
        if line.startswith("$ "):
            typed.append((line[2:], ""))
        elif typed and not typed[-1][1] and line.startswith("    "):
            typed[-1] = (f"{typed[-1][0]} {line.strip()}", "")
        elif typed:
            typed[-1] = (typed[-1][0], f"{typed[-1][1]}{line}\n")
    return typed


def commands(page: Path) -> list[str]:
    """What a reader is to type into a shell."""
    return [command for command, _ in sessions(page)]
