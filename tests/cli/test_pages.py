"""The commands that the documentation shows and names are there, with the options it gives them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.pages import PAGES, ROOT, commands, words
from tocsin.cli.main import app

FLAG = re.compile(r"--?[A-Za-z][\w-]*")


@cache
def root() -> Any:
    """``tocsin``."""
    return get_command(app)


def options(command: Any, *, below: bool = False) -> set[str]:
    """What the command takes, and what those ``below`` it take, too."""
    own = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    inner = getattr(command, "commands", {}).values() if below else ()
    return own.union(*(options(each, below=True) for each in inner), {"--help"})


def unknown(text: str) -> list[str]:
    """The commands and options in the words after ``tocsin`` that there are not."""
    command, allowed, found = root(), options(root()), []
    for word in text.partition(" #")[0].split():
        flag = FLAG.match(word)
        if flag:
            found.append(flag[0])
        elif word in getattr(command, "commands", {}):
            command = command.commands[word]
            allowed |= options(command)
    # Where only a group is named, the option is one of its commands'.
    allowed |= options(command, below=True)
    return [flag for flag in found if flag not in allowed]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_are_shown_are_taken(page: Path) -> None:
    parts = [part for text in [*commands(page), *words(page)] for part in re.split(r"\||&&|;", text)]
    typed = [found[1] for part in parts if (found := re.search(r"(?:^|[\s/])tocsin (.*)", part.strip()))]
    assert {text: wrong for text in typed if (wrong := unknown(text))} == {}


def test_an_option_that_is_not_there_is_found() -> None:
    assert unknown("balance plan --planer ldm") == ["--planer"]
    assert unknown("top --where 'a = 1'") == ["--where"]
    assert unknown("subscribe --where 'a = 1' # --later") == []
