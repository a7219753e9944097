from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.data.server.memory import MemoryCluster
from tocsin.data.server.uploads import clear, upload
from tocsin.model.messages import Health
from tocsin.settings import Settings

DATASET = "CREATE DATASET Reports (id STRING, size INT) PRIMARY KEY id"
FEED = "CREATE FEED reports INTO Reports"
CHANNEL = "CREATE CONTINUOUS CHANNEL Of(event STRING) AS SELECT * FROM Reports"


@pytest.fixture
async def filled(client: httpx.AsyncClient) -> httpx.AsyncClient:
    answer = await client.post("/apply", content=f"{DATASET}; {FEED}; {CHANNEL};")
    assert answer.status_code == 200
    return client


def message(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["message"])


async def test_applying_a_file_tells_what_each_statement_did(client: httpx.AsyncClient) -> None:
    applied = (await client.post("/apply", content=f"{DATASET}; SHOW DATASETS")).json()["outcomes"]
    assert [(outcome["statement"], outcome["action"]) for outcome in applied] == [
        ("dataset Reports", "created"),
        ("show datasets", "shown"),
    ]
    assert applied[1]["rows"][0]["name"] == "Reports"


async def test_a_refused_statement_is_answered_with_its_place(client: httpx.AsyncClient) -> None:
    refused = await client.post("/apply", content="SHOW FEEDS;\n  CREATE TABLE x")
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["code"], error["line"], error["column"]) == ("statement", 2, 10)


async def test_a_failure_half_way_says_and_logs_what_was_carried_out(
    client: httpx.AsyncClient, cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.full_at = "reports"
    with caplog.at_level("INFO", "tocsin"):
        failed = await client.post("/apply", content=f"{DATASET}; SHOW DATASETS; {FEED}")
    error = failed.json()["error"]
    assert (failed.status_code, error["code"]) == (507, "storage")
    assert [(each["statement"], each["action"]) for each in error["outcomes"]] == [
        ("dataset Reports", "created"),
        ("show datasets", "shown"),
    ]
    assert [record.msg for record in caplog.records if record.msg == "statement applied"] == ["statement applied"]


async def test_checking_a_file_tells_what_it_would_do_and_does_nothing(
    client: httpx.AsyncClient, cluster: MemoryCluster
) -> None:
    checked = await client.post("/check", content=f"{DATASET}; LOAD DATASET Reports FROM 'x.csv'; {FEED}")
    assert [each["action"] for each in checked.json()["outcomes"]] == ["created", "created"]
    assert cluster.definitions == {}
    assert (await client.post("/check", content=FEED)).status_code == 400
    assert (await client.post("/check", content="")).status_code == 400


async def test_a_path_to_load_is_refused_with_what_to_do_instead(client: httpx.AsyncClient) -> None:
    refused = await client.post("/apply", content=f"{DATASET};\nLOAD DATASET Reports FROM '/etc/passwd'")
    assert (refused.status_code, refused.json()["error"]["line"]) == (400, 2)
    assert "tocsin apply" in message(refused)
    assert "POST /datasets/Reports/load" in message(refused)


async def test_an_empty_file_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.post("/apply", content=" -- nothing")).status_code == 400


@pytest.mark.parametrize("as_json", [True, False])
async def test_things_are_created_by_statement_or_by_json(client: httpx.AsyncClient, as_json: bool) -> None:
    for path, statement in (("/datasets", DATASET), ("/feeds", FEED), ("/channels", CHANNEL)):
        body: dict[str, Any] = {"json": {"statement": statement}} if as_json else {"content": statement}
        created = await client.post(path, **body)
        assert (created.status_code, created.json()["action"]) == (201, "created")
        again = await client.post(path, **body)
        assert (again.status_code, again.json()["action"]) == (200, "unchanged")
        assert [item["name"] for item in (await client.get(path)).json()["items"]] == [
            created.json()["statement"].split()[1]
        ]


async def test_another_definition_is_a_conflict_unless_it_replaces(filled: httpx.AsyncClient) -> None:
    changed = "FEED reports INTO Reports INTO 4 SLICES"
    refused = await filled.post("/feeds", content=f"CREATE {changed}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    assert "OR REPLACE" in message(refused)
    replaced = await filled.post("/feeds", content=f"CREATE OR REPLACE {changed}")
    assert (replaced.status_code, replaced.json()["action"]) == (200, "replaced")


async def test_a_call_takes_one_statement_of_its_own_kind(client: httpx.AsyncClient) -> None:
    other = await client.post("/feeds", content=DATASET)
    assert (other.status_code, message(other)) == (400, "this call takes CREATE FEED; POST /apply takes any statement")
    both = await client.post("/datasets", content=f"{DATASET};\n{DATASET}")
    assert (both.status_code, both.json()["error"]["line"]) == (400, 2)


async def test_things_are_dropped_by_name(filled: httpx.AsyncClient) -> None:
    assert (await filled.delete("/channels/Of")).json()["action"] == "dropped"
    gone = await filled.delete("/channels/Of")
    assert (gone.status_code, message(gone)) == (404, "there is no channel Of; GET /channels lists those there are")
    assert (await filled.delete("/channels/no;name")).status_code == 400


async def test_lists_are_cut_at_the_limit_and_say_how_much_there_is(filled: httpx.AsyncClient) -> None:
    parameters = [{"event": str(number)} for number in range(5)]
    await filled.post("/subscriptions", json={"broker": "b", "channel": "Of", "parameters": parameters})
    listed = (await filled.get("/subscriptions", params={"limit": 2})).json()
    assert (len(listed["items"]), listed["total"]) == (2, 5)
    assert (await filled.get("/subscriptions", params={"limit": "-1"})).status_code == 400


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"id": "1"}', "application/json"),
        (b'[{"id": "1"}]', "application/json"),
        (b'{"id": "1"}\n', "application/x-ndjson"),
    ],
)
async def test_a_record_an_array_and_lines_are_published(
    filled: httpx.AsyncClient, cluster: MemoryCluster, body: bytes, content_type: str
) -> None:
    answer = await filled.post("/feeds/reports", content=body, headers={"Content-Type": content_type})
    assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "refused": [], "unlisted": 0})
    assert cluster.published["reports"] == [b'{"id":"1"}']


async def test_refused_records_are_told_by_index_and_reason(filled: httpx.AsyncClient) -> None:
    some = await filled.post("/feeds/reports", json=[{"id": "1"}, {"id": 2}])
    assert some.status_code == 200
    assert (some.json()["accepted"], [refusal["index"] for refusal in some.json()["refused"]]) == (1, [1])
    none = await filled.post("/feeds/reports", json=[{"id": 1}, {"id": 2}])
    error = none.json()["error"]
    assert (none.status_code, error["code"]) == (400, "refused")
    assert [refusal["index"] for refusal in error["refused"]] == [0, 1]
    assert error["message"].startswith("none of the 2 records was accepted; record 0: field 'id'")


async def test_a_dataset_is_loaded_from_the_body_and_nothing_stays_behind(
    filled: httpx.AsyncClient, cluster: MemoryCluster, settings: Settings
) -> None:
    loaded = await filled.post(
        "/datasets/Reports/load", content=b"id,size\n1,2\n", headers={"Content-Type": "text/csv"}
    )
    assert (loaded.status_code, loaded.json()) == (200, {"rows": 2, "unchanged": False})
    assert cluster.loaded == {"Reports.csv": b"id,size\n1,2\n"}
    assert list((settings.data.directory / "uploads").iterdir()) == []


async def test_loading_needs_a_known_kind_of_file_and_a_dataset(filled: httpx.AsyncClient) -> None:
    unknown = await filled.post("/datasets/Reports/load", content=b"x", headers={"Content-Type": "image/png"})
    assert (unknown.status_code, "text/csv" in message(unknown)) == (400, True)
    csv = {"Content-Type": "text/csv; charset=utf-8"}
    assert (await filled.post("/datasets/Other/load", content=b"x", headers=csv)).status_code == 404
    assert (await filled.post("/datasets/..%5Cx/load", content=b"x", headers=csv)).status_code == 400


async def test_a_disk_that_refuses_an_upload_is_507(filled: httpx.AsyncClient, settings: Settings) -> None:
    settings.data.directory.mkdir()
    (settings.data.directory / "uploads").write_text("in the way", encoding="utf-8")
    refused = await filled.post("/datasets/Reports/load", content=b"x", headers={"Content-Type": "text/csv"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "storage")


async def test_a_broker_registers_subscribes_and_unsubscribes(
    filled: httpx.AsyncClient, cluster: MemoryCluster
) -> None:
    assert (await filled.post("/brokers", json={"name": "north", "url": "ws://north"})).status_code == 201
    assert (await filled.get("/brokers")).json()["items"] == [{"name": "north", "url": "ws://north"}]
    wanted = {"broker": "north", "channel": "Of", "parameters": [{"event": "a"}, {"event": "b"}, {"event": "a"}]}
    assert (await filled.post("/subscriptions", json=wanted)).json() == {"ids": [0, 1, 0]}
    left = await filled.post("/subscriptions/detach", json={"broker": "north", "ids": [0, 9]})
    assert left.json() == {"detached": 1}


@pytest.mark.parametrize(
    "body",
    [
        {"name": "north"},
        {"name": "", "url": "ws://x"},
        {"name": "a b", "url": "ws://x"},
        {"name": "n", "url": "file:x"},
    ],
)
async def test_a_broker_that_cannot_be_is_refused_by_field(client: httpx.AsyncClient, body: dict[str, str]) -> None:
    refused = await client.post("/brokers", json=body)
    assert refused.status_code == 400
    assert "name" in message(refused) or "url" in message(refused)


async def test_payloads_are_passed_on_exactly_as_they_were_made(
    filled: httpx.AsyncClient, cluster: MemoryCluster
) -> None:
    payload = b'[ {"x" : 1.0e2 ,"y":"\\u0041"} ]'
    cluster.find(1, 7, payload)
    cluster.find(2, 8, b"[]")
    wanted = {"channel": "Of", "first": 1, "last": 1, "ids": [7, 8]}
    answer = await filled.post("/results", json=wanted)
    expected = b'{"results":[{"execution":1,"be":7,"rows":1,"bytes":%d,"payload":%s}],"upto":1,"oldest":1}'
    expected %= (len(payload), payload)
    assert answer.content == expected
    everything = await filled.post("/results", json={"channel": "Of", "first": 1, "last": 9})
    assert [result["be"] for result in everything.json()["results"]] == [7, 8]


async def test_rates_come_in_the_order_asked_for(client: httpx.AsyncClient) -> None:
    assert (await client.post("/rates", json={"ids": [2, 0]})).json() == {"rates": [3.0, 0.0]}


@pytest.mark.parametrize("number", [-1, 2**63, 1e300, "1", None])
async def test_a_number_no_subscription_can_have_is_refused(client: httpx.AsyncClient, number: object) -> None:
    assert (await client.post("/rates", json={"ids": [number]})).status_code == 400


async def test_health_is_bare_without_a_token_and_full_with_one(
    client: httpx.AsyncClient, cluster: MemoryCluster
) -> None:
    full = await client.get("/health")
    assert (full.status_code, full.json()["channels"][0]["execution"]) == (200, 3)
    del client.headers["Authorization"]
    assert (await client.get("/health")).json() == {"status": "ok"}
    cluster.status = Health("starting")
    starting = await client.get("/health")
    assert (starting.status_code, starting.json()) == (503, {"status": "starting"})


async def test_a_large_upload_is_written_as_it_comes_up_to_its_bound(
    filled: httpx.AsyncClient, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.server.statements.MOST_LOAD_BYTES", 3 << 20)

    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * (1 << 20)

    csv = {"Content-Type": "text/csv"}
    assert (await filled.post("/datasets/Reports/load", content=chunks(3), headers=csv)).status_code == 200
    assert len(cluster.loaded["Reports.csv"]) == 3 << 20
    assert (await filled.post("/datasets/Reports/load", content=chunks(4), headers=csv)).status_code == 413


def test_what_a_crash_left_of_an_upload_is_cleared_away(tmp_path: Path) -> None:
    with upload(tmp_path, "Reports.csv") as path:
        path.write_bytes(b"left by a crash")
        clear(tmp_path)
        assert not path.exists()
