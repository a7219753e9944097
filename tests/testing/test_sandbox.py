"""The networks for applications' tests do what their page says."""

from __future__ import annotations

import pytest

import tocsin
from tests.pages import ROOT, blocks
from tocsin.errors import NotFoundError
from tocsin.testing import QUICK, Sandbox, VirtualNetwork

PAGE = ROOT / "docs" / "testing.md"


IN_A_SANDBOX, ON_VIRTUAL_TIME, CHECKED = blocks(PAGE, "python")


@pytest.mark.parametrize(
    ("text", "said"), [(IN_A_SANDBOX, "1 [{'etype': 'flood', 'severity': 4}]\n"), (CHECKED, "[]\n")]
)
async def test_an_example_of_the_page_runs(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    names: dict[str, object] = {}
    exec(f"async def example():\n{indented}", names)
    await names["example"]()  # type: ignore[operator]
    assert capsys.readouterr().out == said


def test_the_example_on_virtual_time_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(ON_VIRTUAL_TIME, {})
    assert capsys.readouterr().out.splitlines() == [
        "1 [{'where': 'Irvine'}]",
        "['ann: of subscription 1, executions [2, 3] did not come']",
        "2 [{'where': 'on the hill'}]",
        "3 [{'where': 'on the hill'}]",
        "[]",
    ]


async def test_what_the_page_names_is_there() -> None:
    async with Sandbox() as sandbox:
        for thing, heading in ((sandbox, "of a sandbox"), (VirtualNetwork(), "of a virtual network")):
            for name in _named(heading):
                there: object = thing
                for part in name.split("."):
                    there = getattr(there, part)


async def test_each_is_given_what_is_found_for_their_parameters() -> None:
    async with (
        Sandbox() as sandbox,
        tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as ann,
        tocsin.connect(sandbox.url, await sandbox.register("bob"), rules=QUICK) as bob,
    ):
        fires, floods = await ann.subscribe("OfType", event="fire"), await bob.subscribe("OfType", event="flood")
        sandbox.execute("OfType", find=lambda wanted: [{"n": 1}] * (wanted["event"] == "flood"))
        sandbox.execute("OfType", find=lambda wanted: [{"n": 1}] * (wanted["event"] == "fire"))
        assert (await anext(fires)).execution == 2
        assert (await anext(floods)).execution == 1
        assert sorted(sandbox.executions_with_results().values()) == [[1], [2]]


async def test_there_is_one_channel_that_does_not_exist() -> None:
    async with Sandbox() as sandbox, tocsin.connect(sandbox.url, await sandbox.register("ann")) as ann:
        with pytest.raises(NotFoundError):
            await ann.subscribe("Nowhere")


def _named(heading: str) -> set[str]:
    """What the first column of a table names."""
    table = PAGE.read_text(encoding="utf-8").split(f"| {heading} |")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {word.split("(")[0] for cell in cells for word in cell.split("`")[1::2] if word[0].islower()}
