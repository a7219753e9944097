from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.data.server.memory import MemoryCluster
from tocsin.data.language.forms import CreateDataset, CreateFeed
from tocsin.data.language.parser import parse

DEFINITIONS = """
CREATE DATASET Reports (id STRING, size INT, at TIMESTAMP, open BOOLEAN, tags ARRAY<STRING>, cost DECIMAL(6, 2))
  PRIMARY KEY id;
CREATE FEED reports INTO Reports;
"""


@pytest.fixture
def reports(cluster: MemoryCluster) -> MemoryCluster:
    dataset, feed = parse(DEFINITIONS)
    assert isinstance(dataset, CreateDataset)
    assert isinstance(feed, CreateFeed)
    cluster.definitions = {"Reports": dataset.definition, "reports": feed.feed(dataset.definition, 16)}
    return cluster


def ids(cluster: MemoryCluster) -> list[str]:
    return [json.loads(line)["id"] for line in cluster.published.get("reports", [])]


RECORDS = [{"id": str(number), "size": number} for number in range(25)]
EVERY_ID = [record["id"] for record in RECORDS]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, RECORDS)),
        "\ufeff" + "\r\n\r\n".join(map(json.dumps, RECORDS)) + "\n\n",
        json.dumps(RECORDS),
        json.dumps(RECORDS, indent=2),
        "\n".join(json.dumps(record, indent=2) for record in RECORDS),
    ],
    ids=["lines", "lines with gaps", "array", "spread array", "spread objects"],
)
def test_json_in_any_form_is_published_in_batches(tocsin: Program, reports: MemoryCluster, text: str) -> None:
    Path("records.json").write_text(text, encoding="utf-8", newline="")
    published = tocsin("publish", "reports", "records.json", "--batch", "10")
    assert (published.status, published.out) == (0, "25 accepted, 0 refused\n")
    assert ids(reports) == EVERY_ID


def test_csv_is_written_as_the_types_of_the_dataset(tocsin: Program, reports: MemoryCluster) -> None:
    Path("records.csv").write_text(
        'id,size,at,open,tags,cost\n007, 5,2026-01-31T12:00:00Z,TRUE,"[""a"",""b""]",1.50\n"two\nlines",,,,,\n',
        encoding="utf-8",
    )
    published = tocsin("publish", "reports", "records.csv")
    assert (published.status, published.out) == (0, "2 accepted, 0 refused\n")
    first, second = map(json.loads, reports.published["reports"])
    assert (first["id"], first["size"], first["open"], first["tags"], first["cost"]) == (
        "007",
        5,
        True,
        ["a", "b"],
        1.5,
    )
    assert second == {"id": "two\nlines"}


def test_refused_records_are_told_by_line_and_status_1(tocsin: Program, reports: MemoryCluster) -> None:
    Path("r.csv").write_text('id,size\n1,1\n"2\n2",2\n3,many\n,4\n', encoding="utf-8")
    published = tocsin("publish", "reports", "r.csv")
    assert (published.status, published.out) == (1, "2 accepted, 2 refused\n")
    assert "r.csv:5: field 'size': expected INT" in published.err
    assert "r.csv:6: field 'id': must be present" in published.err


def test_when_all_of_a_batch_is_refused_the_others_still_go(tocsin: Program, reports: MemoryCluster) -> None:
    lines = ["{}", "nonsense", '{"id":"1"}', '{"id":"2"}']
    published = tocsin("publish", "reports", "-", "--batch", "2", stdin="\n".join(lines).encode())
    assert (published.status, published.out) == (1, "2 accepted, 2 refused\n")
    assert published.err.splitlines()[-2].startswith("-:1: ")
    assert published.err.splitlines()[-1].startswith("-:2: not JSON")


def test_only_the_first_reasons_are_printed(tocsin: Program, reports: MemoryCluster) -> None:
    published = tocsin("publish", "reports", "-", stdin=b"{}\n" * 30)
    assert published.err.count("must be present") == 10
    assert published.err.rstrip().endswith("… and 20 more refused")


def test_csv_may_come_from_standard_input(tocsin: Program, reports: MemoryCluster) -> None:
    published = tocsin("publish", "reports", "-", "--csv", stdin=b"id\n1\n2\n")
    assert (published.status, ids(reports)) == (0, ["1", "2"])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("r.json", '[{"id":"1"},\n {"id":', "line 2: not JSON"),
        ("r.json", '[{"id":"1"}] 5', "line 1: not JSON: something follows the array"),
        ("r.json", '[{"id":"1"}\n\n{"id":"2"}]', "line 3: not JSON: expected ']'"),
        ("r.json", '[{"id":"1"}, NaN]', "line 1: not JSON: NaN is not JSON"),
        ("r.csv", "id,size\n1\n", "line 2: 1 fields, but the first row names 2 columns"),
        ("r.csv", "", "the file is empty"),
    ],
)
def test_a_file_that_breaks_off_says_where(
    tocsin: Program, reports: MemoryCluster, name: str, text: str, reason: str
) -> None:
    Path(name).write_text(text, encoding="utf-8")
    broken = tocsin("publish", "reports", name)
    assert broken.status == 1
    assert reason in broken.err


def test_an_unknown_feed_is_one_line(tocsin: Program, reports: MemoryCluster) -> None:
    Path("r.csv").write_text("id\n1\n", encoding="utf-8")
    assert "there is no feed report (did you mean reports?)" in tocsin("publish", "report", "r.csv").err
    assert tocsin("publish", "report", "-", stdin=b"{}").err.endswith("error: there is no feed report\n")


def test_a_file_that_is_missing_is_one_line(tocsin: Program, cluster: MemoryCluster) -> None:
    assert (
        tocsin("publish", "reports", "none.json").err == "error: none.json cannot be read: No such file or directory\n"
    )


def test_a_rate_spreads_the_records(tocsin: Program, reports: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tocsin.cli.publish.time.sleep", waits.append)
    published = tocsin("publish", "reports", "-", "--rate", "100", stdin=b'{"id":"1"}\n' * 25)
    assert published.out == "25 accepted, 0 refused\n"
    assert len(waits) == 3, "ten records a request, ten requests a second"
    assert waits[0] == 0
    assert all(wait <= due for wait, due in zip(waits, (0, 0.1, 0.2), strict=True))


def test_what_was_accepted_is_told_even_when_the_rest_fails(tocsin: Program, reports: MemoryCluster) -> None:
    failed = tocsin("publish", "reports", "-", "--batch", "1", stdin=b'[{"id":"1"},\n{"id":')
    assert (failed.status, failed.out) == (1, "1 accepted, 0 refused\n")
    assert failed.err.startswith("error: line 2: not JSON")


def test_a_url_that_is_none_is_refused_at_once(tocsin: Program) -> None:
    refused = tocsin("publish", "reports", "-", "--server", "127.0.0.1:8800", stdin=b'{"id": "1"}')
    assert refused.status == 1
    assert refused.err.startswith("error: 127.0.0.1:8800 is not a URL: ")
