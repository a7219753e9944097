"""The network for applications' tests does what its page says."""

from __future__ import annotations

import pytest

import tocsin
from tests.pages import ROOT, blocks
from tocsin.errors import NotFoundError
from tocsin.testing import QUICK, Sandbox

PAGE = ROOT / "docs" / "testing.md"


@pytest.mark.parametrize(
    ("text", "said"),
    [*zip(blocks(PAGE, "python"), ["1 [{'etype': 'flood', 'severity': 4}]\n", "10 0\n"], strict=True)],
)
async def test_an_example_of_the_page_runs(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    names: dict[str, object] = {}
    exec(f"async def example():\n{indented}", names)
    await names["example"]()  # type: ignore[operator]
    assert capsys.readouterr().out == said


async def test_what_the_page_names_is_there() -> None:
    async with Sandbox() as sandbox:
        named = {word.split("(")[0] for line in _table() for word in line.split("`")[1::2] if word[0].islower()}
        for name in named:
            thing: object = sandbox
            for part in name.split("."):
                thing = getattr(thing, part)


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
        assert sorted(sandbox.found().values()) == [[1], [2]]


async def test_there_is_one_channel_that_does_not_exist() -> None:
    async with Sandbox() as sandbox, tocsin.connect(sandbox.url, await sandbox.register("ann")) as ann:
        with pytest.raises(NotFoundError):
            await ann.subscribe("Nowhere")


def _table() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line.split("|")[1] for line in lines if line.startswith("| `")]
