"""The documentation keeps its promises: links lead somewhere, and what it names is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.pages import PAGES, README, ROOT, TUTORIAL, blocks, commands, prose, words
from tests.sources import CORES, deciding, sources
from tocsin import __version__
from tocsin.cli.main import app
from tocsin.data.language.parser import parse
from tocsin.settings.keys import KEYS

PAGE_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
COMMANDS = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
SHARED_WORDS = set(
    re.findall(
        r"\w+",
        """
        Action Close Decide Decided Drain Ended Error Event Flushed Gap Gauged Hello Lost Note Opened Prepare
        Prepared Publish Published Received Refused Released Send Start Stored Subscribe Subscribed Tick
        Unsubscribe Unsubscribed Welcome
        """,
    )
)
"""What messages, events and actions of several protocols are called, which mean the same in each."""
VERBS = {"actions", "dialogue", "events", "messages"}
"""Modules of cores with what is said, has happened and is to be done: those words stand with the protocols."""
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def _said(page: Path, pattern: str) -> set[str]:
    """What a pattern's group matches in the commands of a page and in the words it marks as code."""
    return {found for text in [*commands(page), *words(page)] for found in re.findall(pattern, text)}


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_links_lead_to_something(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    dead = [target for target in targets if "://" not in target and not _exists(page, target)]
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_commands_that_are_named_exist(page: Path) -> None:
    assert _said(page, r"(?:^|[\s|(])tocsin ([a-z]+)") - COMMANDS == set()
    assert _said(page, r"(?:^|\s)make ([a-z]+)") - TARGETS == set()


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_settings_that_are_named_exist(page: Path) -> None:
    sections = {key.split(".")[0] for key in KEYS}
    named = {word for word in words(page) if re.fullmatch(r"[a-z]+\.[a-z_]+", word) and word.split(".")[0] in sections}
    assert named - set(KEYS) - {"settings.md"} == set()


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_places_in_the_repository_that_are_named_exist(page: Path) -> None:
    named = {
        word.rstrip("/") for word in words(page) if re.fullmatch(r"(tocsin|tests|docs|scripts|deploy)/[\w./-]+", word)
    }
    assert [
        place for place in sorted(named) if not (ROOT / place).exists() and not (ROOT / f"{place}.py").exists()
    ] == []


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=["README.md", "tutorial.md"])
def test_statements_that_are_shown_can_be_read(page: Path) -> None:
    shown = blocks(page, "sql")
    assert shown
    assert all(parse(text) for text in shown)


def test_decisions_are_numbered_through_and_listed() -> None:
    numbers = [int(page.name[:3]) for page in DECISIONS]
    assert numbers == list(range(1, len(DECISIONS) + 1))
    listed = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [page.name for page in DECISIONS if f"(decisions/{page.name})" not in listed] == []


def test_a_decision_is_titled_with_its_number_and_takes_half_a_page() -> None:
    for page in DECISIONS:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:3]}: ")
        assert len(text.splitlines()) <= 45


def test_the_changelog_begins_with_this_version_or_with_what_is_not_released() -> None:
    newest, *released = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if __version__.endswith(".dev0"):
        assert newest == "[Unreleased]"
        assert not any(__version__.removesuffix(".dev0") in title for title in released)
    else:
        assert re.fullmatch(rf"\[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", newest)


def _exists(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    linked = page.parent / path if path else page
    return linked.exists() and (not anchor or anchor in _anchors(linked))


def _anchors(page: Path) -> set[str]:
    """As the headings of a page are called in links to them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_words_of_the_code_have_one_meaning_each() -> None:
    defined, named = _classes(), _glossary()
    assert named
    assert {word: defined[word] for word in named - SHARED_WORDS if defined[word] != 1} == {}


@pytest.mark.parametrize("package", sorted(CORES.keys() - {"tocsin.model"}))
def test_every_noun_of_a_core_is_explained(package: str) -> None:
    modules = [module for module in deciding(package) if module.rpartition(".")[2] not in VERBS]
    classes = [each.name for module in modules for each in sources()[module].body if isinstance(each, ast.ClassDef)]
    assert classes
    assert {name for name in classes if not name.startswith("_")} - _glossary() == set()


def test_only_what_protocols_share_is_called_the_same() -> None:
    assert {name for name, count in _classes().items() if count > 1 and not name.startswith("_")} == SHARED_WORDS


def _glossary() -> set[str]:
    """The classes that the architecture explains."""
    page = prose(ROOT / "docs" / "architecture.md")
    tables = re.findall(r"^### In the code[^\n]*\n(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL)
    rows = [line for table in tables for line in table.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row.split("|")[1])}


def _classes() -> Counter[str]:
    """How many classes there are of each name."""
    return Counter(
        name
        for file in (ROOT / "tocsin").rglob("*.py")
        for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
