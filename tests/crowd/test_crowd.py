"""People in processes of their own, on real brokers' cores: what they count, and what happens when some die."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.waiting import until_async
from tocsin.crowd.crowd import Crowd, Member, crowd
from tocsin.crowd.messages import CrowdTrouble, Heard, PersonMoved
from tocsin.crowd.plan import PER_PROCESS, CrowdPlan, CrowdShare, processes
from tocsin.crowd.timetable import StepKind, timetable
from tocsin.errors import InvalidError, UnavailableError
from tocsin.local.journal import Journal
from tocsin.testing.sandbox import Sandbox
from tocsin.testing.serving import serving

NOWHERE = "http://127.0.0.1:1"
PEOPLE = 7


class Audience:
    """Who hears what a crowd tells."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self.heard = 0

    def hear(self, telling: Heard | PersonMoved | CrowdTrouble) -> None:
        if isinstance(telling, CrowdTrouble):
            self.troubles.append(telling.message)
        self.heard += isinstance(telling, Heard)


@asynccontextmanager
async def living(plan: CrowdPlan, logs: Path, audience: Audience, parts: int = 2) -> AsyncIterator[Crowd]:
    """A crowd that is listened to."""
    async with crowd(plan, plan.people, logs, audience.hear, parts) as people:
        watching = asyncio.create_task(people.watch())
        try:
            yield people
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


@asynccontextmanager
async def data() -> AsyncIterator[str]:
    """A data cluster that takes reports."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"accepted":1}')

    async with serving(take) as port:
        yield f"http://127.0.0.1:{port}"


def process_of(share: int) -> psutil.Process:
    """The process that plays that share."""
    children = psutil.Process().children()
    return next(child for child in children if f'{{"number":{share},"of":2}}' in child.cmdline())


async def execute(sandbox: Sandbox, times: int = 1) -> dict[int, list[int]]:
    """Runs all channels; what was found, by BE subscription."""
    for channel in set(sandbox.data.channels.values()):
        sandbox.execute(channel, times)
    return {be: list(found) for be, found in sandbox.data.found.items()}


async def delivered(people: Crowd, found: dict[int, list[int]]) -> int:
    """How much has come, once nothing is missing."""

    async def complete() -> int:
        compared = await people.compare(found)
        return 0 if compared.lost else compared.delivered

    whole: Callable[[], Awaitable[int]] = complete
    return await until_async(whole, "delivery")


@pytest.mark.process
async def test_people_of_several_processes_are_counted_together(sandbox: Sandbox, tmp_path: Path) -> None:
    audience = Audience()
    async with data() as url, living(CrowdPlan(sandbox.url, url, PEOPLE, 7), tmp_path, audience) as people:
        gathered = await people.wait_gathered()
        held = {
            number: name for name in (f"p{n}" for n in range(PEOPLE)) for _, number in sandbox.subscriptions_of(name)
        }
        assert gathered.people == PEOPLE
        assert set(held) <= set(gathered.subscriptions) == set(sandbox.data.channels)
        people.begin()
        await until_async(lambda: people.figures.published.get("locations", 0) > PEOPLE, "locations")
        await until_async(lambda: people.figures.published.get("reports", 0) > 1, "reports")
        found = await execute(sandbox, 3)
        assert await delivered(people, found) == 3 * len(gathered.subscriptions)
        await until_async(lambda: audience.heard, "note that is told of")
        people.hush()
        figures = people.figures
        assert (figures.duplicates, figures.disordered, people.missing) == (0, 0, 0)
        assert sum(figures.late.values()) >= figures.published["locations"]
        assert figures.lags
    assert audience.troubles == []
    assert not [child for child in psutil.Process().children() if "tocsin.crowd.process" in child.cmdline()]


@pytest.mark.process
async def test_a_process_that_dies_is_told_with_its_people_and_the_others_go_on(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    audience = Audience()
    async with data() as url, living(CrowdPlan(sandbox.url, url, PEOPLE, 7), tmp_path, audience) as people:
        everybody = await people.wait_gathered()
        people.begin()
        process_of(1).kill()
        await until_async(lambda: people.missing, "death")
        assert people.missing == PEOPLE // 2
        assert audience.troubles == [f"{PEOPLE // 2} people are gone with the process that played them: status -9"]
        found = await execute(sandbox)
        # Nothing is owed to those who are gone, and all is to the others.
        assert 0 < await delivered(people, found) < len(everybody.subscriptions)
        before = people.figures.published["locations"] if people.figures.published else 0
        await until_async(lambda: people.figures.published.get("locations", 0) > before, "locations of the others")


async def test_half_a_line_of_a_process_that_is_killed_while_speaking_is_not_taken_for_anything(tmp_path: Path) -> None:
    script = 'echo \'{"type":"figures","moved":3}\'; printf \'{"type":"figures","mov\'; kill -9 $$'
    process = await asyncio.create_subprocess_exec("sh", "-c", script, stdout=asyncio.subprocess.PIPE)
    member = Member(process, Journal(tmp_path / "none.log"), 5)
    assert await member.listen(Audience().hear) == "status -9"
    assert (member.alive, member.figures.moved) == (False, 3)
    assert (await member.compare({1: [1]})).expected == 0


@pytest.mark.process
async def test_a_process_that_does_not_answer_is_ended_and_its_people_are_gone(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audience = Audience()
    async with living(CrowdPlan(sandbox.url, NOWHERE, PEOPLE, 7), tmp_path, audience) as people:
        await people.wait_gathered()
        assert (await people.compare({})).subscriptions
        process_of(0).suspend()
        monkeypatch.setattr("tocsin.crowd.crowd._ANSWER_SECONDS", 0.5)
        await people.compare({})
        await until_async(lambda: people.missing, "end")
        assert people.missing == PEOPLE - PEOPLE // 2


@pytest.mark.process
async def test_whoever_gets_no_answer_does_not_come_and_is_told_of(sandbox: Sandbox, tmp_path: Path) -> None:
    audience = Audience()
    sandbox.calls.away = True
    async with living(CrowdPlan(sandbox.url, NOWHERE, PEOPLE, 7), tmp_path, audience) as people:
        assert (await people.wait_gathered()).people == 0
        assert len(audience.troubles) == PEOPLE
        assert all("could not come: no answer from the coordinator" in trouble for trouble in audience.troubles)


@pytest.mark.process
async def test_people_who_find_no_coordinator_say_so_and_are_gone(tmp_path: Path) -> None:
    async with crowd(CrowdPlan(NOWHERE, NOWHERE, 2, 7), 2, tmp_path, Audience().hear, 2) as people:
        with pytest.raises(UnavailableError, match="the people are gone: error: no coordinator at"):
            await people.watch()


@pytest.mark.process
async def test_reports_that_cannot_be_published_are_told_and_nobody_waits_for_them(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    audience = Audience()
    async with living(CrowdPlan(sandbox.url, NOWHERE, 2, 7), tmp_path, audience, 1) as people:
        await people.wait_gathered()
        people.begin()
        await until_async(lambda: audience.troubles, "trouble")
        assert audience.troubles[0].startswith("reports could not be published: ")
        assert people.figures.published.get("reports", 0) == 0


@pytest.mark.process
async def test_people_come_go_come_back_and_give_up_by_the_timetable(sandbox: Sandbox, tmp_path: Path) -> None:
    """A whole run of the paper's 30 minutes in four seconds, with executions all along."""
    audience = Audience()
    async with data() as url:
        plan = CrowdPlan(sandbox.url, url, 30, 7, seconds=1800, speed=450)
        async with living(plan, tmp_path, audience) as people:
            await people.wait_gathered()
            assert people.figures.held == 0
            people.begin()
            executing = asyncio.create_task(_keep_executing(sandbox))
            world = plan.world(datetime.now(UTC))
            steps = timetable(world.subscribers, world.interests(), 1800, 7).values()
            planned = Counter(step.kind for theirs in steps for step in theirs)
            await until_async(lambda: people.figures.held == planned[StepKind.SUBSCRIBE], "subscriptions")
            await until_async(lambda: people.figures.logouts == planned[StepKind.LOGOUT] > 0, "logouts")
            await until_async(lambda: people.figures.unsubscribed == planned[StepKind.UNSUBSCRIBE] > 0, "giving up")
            # Whoever was away is back, and gets what was found meanwhile.
            await until_async(lambda: len(sandbox.logins) >= planned[StepKind.LOGIN], "return")
            executing.cancel()
            found = {be: list(executions) for be, executions in sandbox.data.found.items()}
            assert await delivered(people, found)
            assert (people.figures.duplicates, people.figures.disordered) == (0, 0)
    assert audience.troubles == []


async def _keep_executing(sandbox: Sandbox) -> None:
    while True:
        await execute(sandbox)
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("people", "cores", "expected"),
    [(1, 8, 1), (PER_PROCESS, 8, 1), (2 * PER_PROCESS, 8, 2), (2 * PER_PROCESS, 1, 1), (20_000, 4, 4)],
)
def test_there_are_as_many_processes_as_people_need_and_cores_carry(people: int, cores: int, expected: int) -> None:
    assert processes(people, cores) == expected


def test_everybody_is_in_exactly_one_share() -> None:
    everybody = [number for share in range(3) for number in CrowdShare(share, 3).people(10)]
    assert sorted(everybody) == list(range(10))


def test_the_world_of_a_plan_is_seeded() -> None:
    first, again = (next(CrowdPlan(NOWHERE, NOWHERE, 5, 7).world(datetime.now(UTC)).seconds()) for _ in range(2))
    assert [place["x"] for place in first.locations] == [place["x"] for place in again.locations]


def test_people_of_a_trace_are_no_more_than_it_has_nor_than_are_asked_for(tmp_path: Path) -> None:
    rows = [(t, node, 10.0 * t, 5.0) for t in range(3) for node in ("p0", "p1", "e2")]
    columns = dict(zip(("t", "node", "x", "y"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "trace.parquet")
    for asked, given in ((400, ["p0", "p1"]), (1, ["p0"])):
        world = CrowdPlan(NOWHERE, NOWHERE, asked, 7, trace=str(tmp_path / "trace.parquet")).world(datetime.now(UTC))
        assert world.subscribers == given
        assert [places[0]["x"] for places in world.locations([0])] == [0.0, 10.0, 20.0]


def test_people_of_a_road_map_are_on_its_roads(tmp_path: Path) -> None:
    (tmp_path / "roads.wkt").write_text("LINESTRING (0 0, 1000 0, 1000 1000, 0 1000, 0 0)\n")
    world = CrowdPlan(NOWHERE, NOWHERE, 9, 7, roads=str(tmp_path / "roads.wkt")).world(datetime.now(UTC))
    assert all(place["x"] in (0, 1000) or place["y"] in (0, 1000) for place in next(world.locations(range(9))))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="cannot be read as traces in Parquet"):
        CrowdPlan(NOWHERE, NOWHERE, 5, 7, trace=str(tmp_path / "none.parquet")).world(datetime.now(UTC))
    with pytest.raises(InvalidError, match="cannot be read as a road map"):
        CrowdPlan(NOWHERE, NOWHERE, 5, 7, roads=str(tmp_path / "none.wkt")).world(datetime.now(UTC))
