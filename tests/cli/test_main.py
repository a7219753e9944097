from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.markup import render
from typer.main import get_command

from tocsin import __version__
from tocsin.cli import main as program
from tocsin.cli.main import app, main
from tocsin.errors import NotFoundError
from tocsin.settings.text import example, markdown


class Outcome:
    """What one run of ``tocsin`` did."""

    def __init__(self, status: int | str | None, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


class Program:
    """``tocsin`` run in this process, in a directory of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> Outcome:
        self._monkeypatch.setattr(sys, "argv", ["tocsin", *arguments])
        with pytest.raises(SystemExit) as exit:
            main()
        captured = self._capsys.readouterr()
        return Outcome(exit.value.code, captured.out, captured.err)


@pytest.fixture
def tocsin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return Program(monkeypatch, capsys)


@pytest.fixture
def _failing_command(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise request.param

    monkeypatch.setattr(program.app, "registered_commands", [*app.registered_commands])
    app.command("fail")(fail)


def test_the_version_is_printed(tocsin: Program) -> None:
    assert tocsin("--version").out == f"tocsin {__version__}\n"


def test_settings_show_where_each_value_came_from(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.toml").write_text("[data]\nport = 1\n", encoding="utf-8")
    monkeypatch.setenv("TOCSIN_DATA_HOST", "::1")
    shown = tocsin("--config", "other.toml", "--set", "feeds.slices=4", "--set", "spark.extra.a=[b]", "settings")
    assert shown.status == 0
    rows = {line.split()[0]: line.split(None, 2)[1:] for line in shown.out.splitlines()}
    assert [part.strip() for part in rows["data.port"]] == ["1", "other.toml"]
    assert [part.strip() for part in rows["data.host"]] == ['"::1"', "environment TOCSIN_DATA_HOST"]
    assert [part.strip() for part in rows["feeds.slices"]] == ["4", "--set"]
    assert [part.strip() for part in rows["spark.extra.a"]] == ['"[b]"', "--set"]
    assert [part.strip() for part in rows["log.level"]] == ['"info"', "defaults"]


def test_the_commented_file_and_the_page_can_be_printed(tocsin: Program) -> None:
    assert tocsin("settings", "--toml").out == example()
    assert tocsin("settings", "--markdown").out == markdown()


def test_settings_that_are_secret_are_not_shown(tocsin: Program) -> None:
    store = "coordinator.store=postgresql://tocsin:hush@db/tocsin"
    shown = tocsin("--set", "broker.token=hush", "--set", "broker.data_token=hush", "--set", store, "settings")
    assert shown.status == 0
    assert "hush" not in shown.out
    assert shown.out.count("(secret)") == 3


def test_a_bad_setting_is_one_line_on_standard_error_and_status_1(tocsin: Program) -> None:
    refused = tocsin("--set", "data.port=x", "settings")
    assert refused.status == 1
    assert refused.out == ""
    assert refused.err.startswith('error: data.port = "x" (from --set) is not allowed')
    assert refused.err.count("\n") == 1


def test_help_does_not_need_good_settings(tocsin: Program) -> None:
    assert tocsin("--set", "data.port=x", "settings", "--help").status == 0


def test_descriptions_fill_the_width_of_the_terminal(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for command in (["demo"], ["simulate", "faults"]):
        helped = [line.strip() for line in tocsin(*command, "--help").out.split("╭─")[0].splitlines()]
        *filled, _ = "\n".join(helped).strip().split("\n\n")[-1].splitlines()
        assert filled
        assert all(len(line) > 80 for line in filled), helped


def _described(command: Any) -> Iterator[str]:
    """What a command, its options and the commands below it say of themselves."""
    yield command.help or ""
    yield from (each.help or "" for each in command.params)
    for inner in getattr(command, "commands", {}).values():
        yield from _described(inner)


def test_what_is_in_brackets_in_a_description_is_shown() -> None:
    descriptions = list(_described(get_command(app)))
    assert len(descriptions) > 100
    for description in descriptions:
        assert render(description).plain == description.replace("\\[", "[")


def test_usage_errors_have_status_2(tocsin: Program) -> None:
    assert tocsin("no-such-command").status == 2
    assert tocsin("settings", "--no-such-option").status == 2


@pytest.mark.usefixtures("_failing_command")
@pytest.mark.parametrize("_failing_command", [NotFoundError("no channel [bold]x[/bold]:\ncreate it")], indirect=True)
def test_an_error_of_ours_is_shown_as_written_on_one_line(tocsin: Program) -> None:
    failed = tocsin("fail")
    assert (failed.status, failed.err) == (1, "error: no channel [bold]x[/bold]: create it\n")


@pytest.mark.usefixtures("_failing_command")
@pytest.mark.parametrize("_failing_command", [KeyError("x")], indirect=True)
def test_a_fault_shows_no_traceback_unless_asked_for(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = tocsin("fail")
    assert failed.status == 1
    assert failed.err == "error: KeyError: 'x' (this is a fault in Tocsin; TOCSIN_DEBUG=1 shows where)\n"
    monkeypatch.setenv("TOCSIN_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["tocsin", "fail"])
    with pytest.raises(KeyError):
        main()


@pytest.mark.usefixtures("_failing_command")
@pytest.mark.parametrize("_failing_command", [KeyboardInterrupt()], indirect=True)
def test_ctrl_c_ends_quietly_with_status_130(tocsin: Program) -> None:
    ended = tocsin("fail")
    assert (ended.status, ended.err) == (130, "")


def test_a_command_may_end_with_a_status_of_its_own(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave() -> None:
        raise typer.Exit(3)

    monkeypatch.setattr(program.app, "registered_commands", [*app.registered_commands])
    app.command("leave")(leave)
    assert tocsin("leave").status == 3


def test_importing_the_program_imports_nothing_heavy() -> None:
    heavy = ("pyspark", "pandas", "pyarrow", "deltalake", "numpy", "sqlglot", "starlette", "uvicorn")
    script = f"import sys, tocsin.cli.main; print(*set({heavy!r}) & set(sys.modules), end='')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
