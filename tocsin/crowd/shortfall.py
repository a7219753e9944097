"""Whether the machine was too small for what was asked of it, and which part of it did not keep up."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.crowd.delays import within
from tocsin.crowd.messages import CrowdFigures

# The generator keeps up as long as nearly all is sent this soon after it was due.
MOST_LATE: Final = 0.5
# The shortest period of the application's channels: what is stored later than this misses the next execution.
PERIOD: Final = 10.0
# Beyond these parts it is no longer a hiccup.
MOST_WITHHELD: Final = 0.1
MOST_MISSED: Final = 0.1


class Strain(msgspec.Struct, frozen=True):
    """What the data cluster says of itself.

    ``lag``: for how many seconds what was published has waited to be stored, at most so far. ``executions`` there were,
    and ``missed`` more would have been, had some not taken longer than their period.
    """

    lag: float = 0.0
    executions: int = 0
    missed: int = 0

    def after(self, before: Strain) -> Strain:
        """As it is now, since another look: what is counted is counted from there."""
        return Strain(self.lag, self.executions - before.executions, self.missed - before.missed)


def generator(figures: CrowdFigures, processes: int) -> str:
    """How late the generator itself was, which no delay of the system has in it."""
    late, lags = figures.late, figures.lags
    return (
        f"The load generator itself ({processes} process{'es' if processes > 1 else ''}): half of what it publishes "
        f"was sent within {within(late, 0.5):.2f} s of when it was due, 95 % within {within(late, 0.95):.2f} s; its "
        f"event loops were at most {within(lags, 0.95):.2f} s behind for 95 % of the time, and never more than "
        f"{within(lags, 1):.2f} s."
    )


def shortfall(figures: CrowdFigures, strain: Strain, speed: float = 1.0) -> str:
    """A sentence that names the parts that did not keep up; nothing when all did.

    ``speed``: how many times as often as they say channels are executed.
    """
    said = []
    late = within(figures.late, 0.95)
    sent = sum(figures.late.values())
    due = sent + figures.withheld
    if late > MOST_LATE:
        said.append(f"the load generator, which sent one in twenty publications more than {late:.1f} s late")
    if due and figures.withheld > MOST_WITHHELD * due:
        part, answer = figures.withheld / due, within(figures.answers, 0.5)
        said.append(
            f"the feeds, which answered so slowly ({answer:.1f} s in the median) that {part:.0%} of the locations were "
            "not sent, since those before them had no answer yet"
        )
    if strain.lag > PERIOD / speed:
        said.append(f"the feeds, which stored what was published up to {strain.lag:.0f} s later")
    wanted = strain.executions + strain.missed
    if wanted and strain.missed > MOST_MISSED * wanted:
        said.append(f"the executions, of which {strain.missed} in {wanted} were left out, others taking too long")
    return f"This machine is too small for what was asked of it. Not keeping up: {'; '.join(said)}." if said else ""
