"""A thousand subscribers moved from one broker to another while they are served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tocsin.bench.broker import targets
from tocsin.bench.broker.contestant import Cores
from tocsin.bench.broker.town import PERIOD, town
from tocsin.bench.report import Figure, quantile


def migration(
    directory: Path, cores: Cores, subscribers: int, seconds: float, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Everybody gets ten notifications a second and is moved once; what that cost is set against what was delivered."""
    with town(directory, cores, subscribers, say) as place:
        say(f"serving {subscribers:,} subscribers for {seconds:.0f} s")
        place.start()
        place.serve(seconds / 2)
        still = quantile([one.longest for one in place.people], 0.99)
        place.start()
        say(f"moving {subscribers:,} subscribers")
        took = place.move()
        silent = quantile([one.longest for one in place.people], 0.99)
        say("serving them where they are now")
        place.serve(max(seconds - took, 0))
        wrong = place.wrong()
        part = 100 * place.overhead() / sum(one.delivered for one in place.people)
    group = f"{subscribers:,} subscribers moved, each told something every {PERIOD:g} s"
    most, limit = targets.SILENCE, targets.OVERHEAD
    yield Figure(group, "all of them moved", took, "s")
    said = f"at most {most:g} s"
    yield Figure(group, "longest silence, p99", silent, "s", silent / still, "unmoved", said, silent <= most)
    name = f"bytes beyond those delivered in {seconds:.0f} s"
    yield Figure(group, name, part, "%", target=f"below {limit:g} %", met=part < limit)
    yield Figure(group, "subscribers with more or less than published", wrong, "", target="0", met=wrong == 0)
