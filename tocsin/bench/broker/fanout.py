"""Fan-out on one core: how many notifications a second reach the subscribers, beside other servers in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tocsin.bench.broker import targets
from tocsin.bench.broker.apart import ContestantProcess
from tocsin.bench.broker.contestant import MOST, Cores, FanoutContestant, FanoutRound, Other, Tocsin
from tocsin.bench.broker.peers.mosquitto import Mosquitto
from tocsin.bench.broker.peers.nats import Nats
from tocsin.bench.broker.peers.peer import PeerServer
from tocsin.bench.broker.peers.redis import Redis
from tocsin.bench.report import Figure, median

PEERS: tuple[PeerServer, ...] = (Redis(), Nats(), Mosquitto())
_WARM_UP = 3


def fanout(
    directory: Path,
    cores: Cores,
    sizes: Sequence[int],
    rounds: int,
    peers: Sequence[PeerServer],
    say: Callable[[str], None],
) -> Iterator[Figure]:
    """All contestants take turns, round by round, so that whatever else the machine does hits them alike."""
    for subscribers in sizes:
        makes: list[tuple[str, Callable[[], FanoutContestant]]] = [(Tocsin.name, partial(Tocsin, subscribers))]
        makes += [(peer.name, partial(Other, subscribers, peer)) for peer in peers]
        with ExitStack() as stack:
            processes = {}
            for name, make in makes:
                say(f"connecting {subscribers:,} subscribers to {name}")
                own = directory / f"{name}-{subscribers}"
                own.mkdir()
                processes[name] = stack.enter_context(ContestantProcess(make, own, cores))
            for count in (MOST, 1):
                yield from _measure(processes, subscribers, count, rounds, say)


def _measure(
    processes: dict[str, ContestantProcess], subscribers: int, count: int, rounds: int, say: Callable[[str], None]
) -> Iterator[Figure]:
    measured: dict[str, list[FanoutRound]] = {name: [] for name in processes}
    for worker in processes.values():
        worker.check(count)
    for turn in range(_WARM_UP + rounds):
        say(f"delivering {count} to each of {subscribers:,} subscribers, round {turn + 1}")
        for name, worker in processes.items():
            took = worker.round(count)
            if turn >= _WARM_UP:
                measured[name].append(took)
    group = f"{count} each to {subscribers:,} subscribers"
    rates = {name: _rate(subscribers * count, several) for name, several in measured.items()}
    for name, rate in rates.items():
        if name != Tocsin.name:
            yield Figure(group, name, rate, "deliveries/s")
    yield from _against(group, count, rates)
    seconds = median([one.seconds for one in measured[Tocsin.name]])
    reading = subscribers * count / processes[Tocsin.name].reading(count, 3 * seconds + 0.5)
    yield Figure(group, "its clients alone", reading, "deliveries/s", reading / rates[Tocsin.name], Tocsin.name)
    for name, several in measured.items():
        used = sum(one.client for one in several) / sum(one.seconds for one in several)
        yield Figure(group, f"processor time of the clients of {name}", 100 * used, "%")
        cost = sum(one.server for one in several) / len(several) / subscribers
        yield Figure(group, f"processor time of {name} per subscriber", 1e6 * cost, "µs")


def _against(group: str, count: int, rates: dict[str, float]) -> Iterator[Figure]:
    """Ours beside each of the others."""
    ours = rates[Tocsin.name]
    if len(rates) == 1:
        yield Figure(group, Tocsin.name, ours, "deliveries/s")
    for name, rate in rates.items():
        if name == Tocsin.name:
            continue
        ratio, target = ours / rate, targets.FANOUT[count].get(name)
        said = f"at least {target:g}×" if target else ""
        yield Figure(group, Tocsin.name, ours, "deliveries/s", ratio, name, said, ratio >= target if target else None)


def _rate(deliveries: int, rounds: Sequence[FanoutRound]) -> float:
    return deliveries / median([one.seconds for one in rounds])
