from __future__ import annotations

from pathlib import Path

from tocsin.local.overlay import LocalOverlay


def test_heads_are_a_chain_and_edges_are_spread_over_them(tmp_path: Path) -> None:
    overlay = LocalOverlay(tmp_path, 2, 3, of_edges=[{"overlay.bandwidth": number} for number in (1, 2, 3)])
    heads, edges = overlay.groups
    assert [part.settings["overlay.head"] for part in heads] == ["", overlay.url("head-1")]
    homes = [overlay.url(name) for name in ("head-1", "head-2", "head-1")]
    assert [part.settings["overlay.head"] for part in edges] == homes
    assert [part.settings["overlay.bandwidth"] for part in edges] == [1, 2, 3]
    assert len({part.settings["overlay.port"] for part in (*heads, *edges)}) == 5
    assert heads[0].settings["overlay.directory"] == tmp_path / "head-1"


def test_nobody_else_is_let_in_whatever_the_settings_are_for(tmp_path: Path) -> None:
    for parts in LocalOverlay(tmp_path, 1, 1, ["--set=overlay.host=0.0.0.0", "--set=overlay.client_token=t"]).groups:
        for part in parts:
            flags = [flag for flag in part.arguments if flag.startswith("--set=overlay.host")]
            assert flags[-1] == "--set=overlay.host=127.0.0.1"
            assert "--set=overlay.client_token=" in part.arguments


def test_edges_begin_when_there_are_heads(tmp_path: Path) -> None:
    steps = LocalOverlay(tmp_path, 1, 2).steps
    assert [(step.sentence, step.start) for step in steps] == [
        ("Starting a head", ["head-1"]),
        ("Starting 2 edges", ["edge-1", "edge-2"]),
    ]
