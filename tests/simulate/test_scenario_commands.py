"""``tocsin simulate scenario``, ``run`` and ``fluid``, as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tocsin.cli.main import app
from tocsin.errors import InvalidError
from tocsin.simulate.scenario import read
from tocsin.simulate.scenarios.popularity import Popularity, popularity

QUICK = ["--minutes", "3", "--subscribers", "40", "--brokers", "3"]


def simulate(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["simulate", *map(str, arguments)], env={"COLUMNS": "120"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    simulate("scenario", "paper", "--out", path, *QUICK, "--capacity", "5e5")
    return path


@pytest.mark.parametrize("kind", [pytest.param("paper", marks=pytest.mark.slow), "city"])
def test_a_scenario_that_is_written_can_be_run(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it.json"
    told = simulate("scenario", kind, "--out", path, *QUICK).stdout
    assert "40 subscribers, 3 brokers" in told
    assert f"tocsin simulate run {path}" in told
    shown = simulate("run", path).stdout
    assert "highest load" in shown
    assert "nearest+migrate+shuffle, seed 1:" in shown
    assert "fingerprint" in shown
    assert "latency" not in shown


def test_popularity_and_seed_make_another_scenario(tmp_path: Path) -> None:
    made = []
    for number, options in enumerate([[], ["--seed", "2"], ["--popularity", "zipf:1.2"]]):
        path = tmp_path / f"{number}.json"
        simulate("scenario", "paper", "--out", path, *QUICK, *options)
        made.append(read(path).subscribes)
    assert made[0] != made[1] != made[2] != made[0]


@pytest.mark.slow
def test_the_figures_of_a_run_are_told_and_kept(small: Path, tmp_path: Path) -> None:
    figures = json.loads(simulate("run", small, "--policy", "ldm+gsh", "--out", tmp_path / "r.json", "--json").stdout)
    record = json.loads((tmp_path / "r.json").read_bytes())
    assert figures["policy"] == record["policy"] == "nearest+ldm+gsh"
    assert figures["last_cov"] == record["cov"][-1]
    assert figures["last_highest"] == record["highest"][-1]
    assert figures["moves"] == record["samples"][-1]["moves"] > 0
    assert figures["decisions"] == record["decisions"]
    assert 0 < figures["latency"]["p50"] <= figures["latency"]["p99"]


@pytest.mark.slow
def test_decisions_come_with_their_reasons_and_latency_with_capacities(small: Path) -> None:
    shown = simulate("run", small, "--policy", "ldm").stdout
    assert "migrate, " in shown
    assert "above α = 0.15" in shown
    assert "latency of " in shown
    assert "nothing was decided" in simulate("run", small, "--policy", "none").stdout
    assert "nothing was decided" in simulate("run", small, "--policy", "ldm", "--alpha", "9").stdout
    assert "nothing was decided" in simulate("run", small, "--beta", "1e12").stdout


@pytest.mark.slow
def test_placements_go_by_the_papers_names_too(small: Path) -> None:
    figures = [
        json.loads(simulate("run", small, "--placement", name, "--json").stdout) for name in ("rr", "round-robin")
    ]
    assert figures[0]["policy"] == "round-robin+migrate+shuffle"
    assert figures[0]["fingerprint"] == figures[1]["fingerprint"]


def test_rates_alone(tmp_path: Path) -> None:
    options = ["--subscribers", "1500", "--brokers", "4", "--minutes", "1", "--json"]
    figures = json.loads(simulate("fluid", *options, "--out", tmp_path / "r.json").stdout)
    alone = json.loads(simulate("fluid", *options, "--policy", "none").stdout)
    slow = json.loads(simulate("fluid", *options, "--moves-per-second", "1").stdout)
    assert figures["mean_cov"] < slow["mean_cov"] < alone["mean_cov"]
    assert figures["moves"] > slow["moves"] > 0 == alone["moves"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "{dir}/missing.json"], r"missing\.json: cannot be read"),
        (["run", "{small}", "--policy", "best"], r"there is no planner 'best'.*the schemes are none, ldm"),
        (["run", "{small}", "--placement", "closest"], r"there is no placement 'closest'; there are nearest"),
        (["run", "{small}", "--out", "{dir}/no/r.json"], r"r\.json: cannot be written: there is no directory"),
        (["scenario", "paper", "--out", "{dir}/no/s.json", *QUICK], r"s\.json: cannot be written"),
        (["scenario", "paper", "--out", "{dir}/s.json", "--popularity", "pareto"], r"write uniform, zipf or zipf:0\.9"),
        (["scenario", "city", "--out", "{dir}/s.json", "--trace", "{small}"], r"cannot be read as traces in Parquet"),
        (["scenario", "city", "--out", "{dir}/s.json", "--roads", "{small}"], r"expected LINESTRING"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(small: Path, tmp_path: Path, arguments: list[str], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        simulate(*[argument.format(dir=tmp_path, small=small) for argument in arguments])


def test_a_scenario_too_short_to_be_looked_at_is_refused(tmp_path: Path) -> None:
    short = {
        "name": "short",
        "seconds": 2,
        "brokers": [{"name": "a"}],
        "channels": [{"name": "news", "period": 1}],
        "lines": {"channel": [], "bytes": []},
        "subscribers": {"x": [], "y": []},
    }
    (tmp_path / "short.json").write_text(json.dumps(short))
    with pytest.raises(InvalidError, match="takes 2 s; loads are looked at every 5 s"):
        simulate("run", tmp_path / "short.json")


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("uniform", Popularity()),
        ("zipf", Popularity(1.0)),
        ("zipf:0.7", Popularity(0.7)),
        ("communities", Popularity(0.0, 50)),
        ("communities:7", Popularity(0.0, 7)),
    ],
)
def test_popularity_is_written_in_a_word(text: str, law: Popularity) -> None:
    assert popularity(text) == law


@pytest.mark.parametrize("text", ["", "zipf:x", "zipf:-1", "zipf:nan", "communities:0", "uniform:3"])
def test_what_is_no_popularity_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(InvalidError, match="is not known; write uniform"):
        popularity(text)
