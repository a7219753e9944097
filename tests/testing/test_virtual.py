"""The network on virtual time: programs run on the client library as it is, and nothing depends on the machine."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from tocsin.client.subscriber import Subscriber
from tocsin.errors import NotFoundError, UnauthorizedError, UnavailableError
from tocsin.simulate.clock import VirtualClock
from tocsin.testing import Checker, Conditions, VirtualNetwork
from tocsin.testing.virtualtime import VirtualEventLoop

HOUR = 3600.0


def test_an_hour_passes_in_a_moment_and_only_while_nothing_is_to_be_done() -> None:
    network = VirtualNetwork()

    async def main() -> list[float]:
        began = asyncio.get_running_loop().time()
        await asyncio.gather(asyncio.sleep(HOUR), *(asyncio.sleep(0) for _ in range(100)))
        return [asyncio.get_running_loop().time() - began, network.now]

    assert network.run(main()) == pytest.approx([HOUR, HOUR])


def test_a_program_that_does_not_end_in_time_is_ended() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        VirtualNetwork().run(main(), seconds=HOUR)


def test_a_program_that_never_waits_is_told_that_time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        while await asyncio.sleep(0, True):
            pass

    monkeypatch.setattr("tocsin.testing.virtualtime._TOO_MANY", 1000)
    with pytest.raises(RuntimeError, match="time stands still"):
        VirtualNetwork().run(main())


def test_a_program_that_waits_for_nothing_is_told_so() -> None:
    loop = VirtualEventLoop(VirtualClock())
    with pytest.raises(RuntimeError, match="nothing is left that could happen"):
        loop.run_until_complete(loop.create_future())
    loop.close()


class Story:
    """Somebody who reads fires, and when each came: the seconds since the beginning, and the execution."""

    def __init__(self, network: VirtualNetwork) -> None:
        self.network = network
        self.had: list[tuple[float, int]] = []

    async def read(self, ann: Subscriber) -> None:
        fires = await ann.subscribe("Fires", city="Irvine")
        async for note in self.network.checker.read("ann", fires):
            self.had.append((self.network.now, note.execution))

    async def program(self, token: str) -> None:
        async with self.network.connect(token) as ann:
            await self.read(ann)

    async def begin(self) -> asyncio.Task[None]:
        running = asyncio.create_task(self.program(await self.network.register("ann")))
        await asyncio.sleep(10)
        return running


def test_what_is_found_is_what_a_test_says_for_the_parameters_of_each() -> None:
    network = VirtualNetwork("east")

    async def main() -> list[dict[str, Any]]:
        async with network.connect(await network.register("ann")) as ann:
            fires = await ann.subscribe("Fires", city="Irvine")
            network.execute("fires", find=lambda wanted: [])
            network.execute("Fires", find=lambda wanted: [{"in": wanted["city"]}])
            return (await anext(fires)).rows

    assert network.run(main()) == [{"in": "Irvine"}]
    assert network.executions_with_results() == {1: [2]}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_is_the_same_story(seed: int) -> None:
    def tell() -> list[tuple[float, int]]:
        network = VirtualNetwork("east", "west", seed=seed)
        story = Story(network)

        async def main() -> None:
            running = await story.begin()
            network.execute("Fires", times=2)
            network.crash("east")
            await asyncio.sleep(30)
            network.execute("Fires")
            await asyncio.sleep(HOUR)
            running.cancel()

        network.run(main())
        assert network.checker.wrong() == []
        return story.had

    assert tell() == tell()


def test_another_seed_is_another_story() -> None:
    def first_note(seed: int) -> float:
        network = VirtualNetwork("east", seed=seed)
        story = Story(network)

        async def main() -> None:
            running = await story.begin()
            network.execute("Fires")
            await asyncio.sleep(1)
            running.cancel()

        network.run(main())
        return story.had[0][0]

    assert first_note(1) != first_note(2)


def test_who_is_cut_off_is_given_the_rest_when_everything_heals() -> None:
    network = VirtualNetwork("east")
    story = Story(network)

    async def main() -> None:
        running = await story.begin()
        network.cut("ann", "east")
        network.execute("Fires", times=3)
        await asyncio.sleep(HOUR)
        assert story.had == []
        assert len(network.checker.wrong()) == 1
        network.heal()
        await asyncio.sleep(120)
        running.cancel()

    network.run(main())
    assert [execution for _, execution in story.had] == [1, 2, 3]
    assert network.checker.wrong() == []


@pytest.mark.parametrize("host", ["coordinator", "data", "east"])
def test_what_crashes_and_starts_again_goes_on(host: str) -> None:
    network = VirtualNetwork("east")
    story = Story(network)

    async def main() -> None:
        running = await story.begin()
        network.crash(host)
        await asyncio.sleep(60)
        network.start(host)
        await asyncio.sleep(60)
        network.execute("Fires")
        await asyncio.sleep(60)
        running.cancel()

    network.run(main())
    assert [execution for _, execution in story.had] == [1]


def test_a_program_that_crashed_is_given_again_what_it_had_not_acknowledged() -> None:
    network = VirtualNetwork("east")
    had = list[int]()

    async def program(token: str) -> None:
        async with network.connect(token) as ann:
            fires = await ann.subscribe("Fires")
            async for note in network.checker.read("ann", fires):
                had.append(note.execution)
                await asyncio.sleep(5)

    async def main() -> None:
        token = await network.register("ann")
        first = asyncio.create_task(program(token))
        await asyncio.sleep(10)
        network.execute("Fires", times=2)
        await asyncio.sleep(1)
        network.crash("ann")
        first.cancel()
        await asyncio.sleep(60)
        second = asyncio.create_task(program(token))
        await asyncio.sleep(60)
        second.cancel()

    network.run(main())
    assert had == [1, 1, 2]
    assert network.checker.wrong() == []


def test_a_broker_is_emptied_and_nobody_misses_anything() -> None:
    network = VirtualNetwork("east", "west")
    story = Story(network)

    async def main() -> None:
        running = await story.begin()
        home = network.where("ann")
        assert home is not None
        await network.drain(home)
        network.execute("Fires", times=5)
        await asyncio.sleep(60)
        assert network.where("ann") == ({"east", "west"} - {home}).pop()
        running.cancel()

    network.run(main())
    assert [execution for _, execution in story.had] == [1, 2, 3, 4, 5]


def test_a_dropped_channel_ends_the_iteration_with_its_reason() -> None:
    network = VirtualNetwork("east")

    async def main() -> None:
        running = await Story(network).begin()
        network.drop("Fires")
        await asyncio.wait_for(running, 60)

    with pytest.raises(NotFoundError, match="Fires"):
        network.run(main())


def test_who_leaves_for_good_is_known_no_more() -> None:
    network = VirtualNetwork("east")

    async def main() -> None:
        token = await network.register("ann")
        async with network.connect(token) as ann:
            await ann.unregister()
        async with network.connect(token):
            pass

    with pytest.raises(UnauthorizedError):
        network.run(main())


def test_what_a_slow_network_costs_can_be_measured() -> None:
    network = VirtualNetwork("east", conditions=Conditions(latency=0.5, spread=0.0))
    story = Story(network)

    async def main() -> float:
        running = await story.begin()
        began = network.now
        network.execute("Fires")
        await asyncio.sleep(60)
        running.cancel()
        return story.had[0][0] - began

    # Told, pulled, answered and sent on: four times on the way.
    assert network.run(main()) == pytest.approx(2.0, abs=0.1)


def test_without_a_coordinator_nobody_is_registered() -> None:
    network = VirtualNetwork("east")
    network.crash("coordinator")
    with pytest.raises(UnavailableError, match="no answer from the coordinator"):
        network.run(network.register("ann"))


def test_a_host_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="there is no host nowhere; there are coordinator, data, east"):
        VirtualNetwork("east").crash("nowhere")


def test_a_checker_says_what_came_twice_late_or_not_at_all() -> None:
    network, found = VirtualNetwork("east"), {1: [1, 2, 3]}
    checker, orders = Checker(lambda: found), [2, 1, 2]

    class Script:
        number, taken = 1, 0

        async def __aiter__(self):  # type: ignore[no-untyped-def]
            for execution in orders:
                yield type("Note", (), {"subscription": 1, "execution": execution, "channel": "Fires"})

    async def main() -> None:
        async for _ in checker.read("ann", Script()):  # type: ignore[arg-type]
            pass

    network.run(main())
    assert checker.wrong() == [
        "ann: execution 1 of Fires came after a newer one",
        "ann: execution 2 of Fires came twice",
        "ann: of subscription 1, executions [3] did not come",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_through_any_trouble_each_note_comes_once_and_in_order(seed: int) -> None:
    network, random = VirtualNetwork("a", "b", seed=seed), Random(seed)
    story = Story(network)

    async def trouble() -> None:
        host = random.choice(["a", "b", "coordinator", "data"])
        match random.randrange(4):
            case 0:
                network.crash(host)
                await asyncio.sleep(random.uniform(0, 10))
                network.start(host)
            case 1:
                network.cut("ann", host)
            case 2:
                await network.drain(random.choice(["a", "b"]), on=random.random() < 0.5)
            case 3:
                network.heal()

    async def main() -> None:
        running = await story.begin()
        for _ in range(60):
            network.execute("Fires")
            await trouble()
            await asyncio.sleep(random.uniform(0, 3))
        network.heal()
        await asyncio.sleep(120)
        assert not running.done()
        running.cancel()

    network.run(main())
    assert len(story.had) > 30
    assert network.checker.wrong() == []
