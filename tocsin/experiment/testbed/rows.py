"""What is kept of a run of the test bed, beside its course."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from tocsin.experiment.series.rows import Placement, Scheme, Seed
from tocsin.experiment.table import Row


class RunSummary(Row, frozen=True):
    """A whole run of the real system."""

    TABLE: ClassVar = "summaries"

    placement: Placement
    scheme: Scheme
    frontend: Annotated[int, Meta(description="FE subscriptions that were made")]
    backend: Annotated[int, Meta(description="BE subscriptions that they came to")]
    reports: Annotated[int, Meta(description="emergency reports that were published")]
    locations: Annotated[int, Meta(description="locations that subscribers published through their brokers")]
    notes: Annotated[int, Meta(description="notifications that subscribers received")]
    bytes: Annotated[int, Meta(description="bytes of what they were told")]
    lost: Annotated[int, Meta(description="of what the data cluster had found for them, what never came")]
    repeated: Annotated[int, Meta(description="notifications that came twice or out of order to the application")]
    troubles: Annotated[int, Meta(description="warnings and errors of the processes, and calls that failed")]
    migrations: Annotated[int, Meta(description="plans of migrations that were followed")] = 0
    shuffles: Annotated[int, Meta(description="plans of shuffles that were followed")] = 0
    seed: Seed = 1
    logouts: Annotated[int, Meta(description="subscribers that disconnected for a while")] = 0
    unsubscribed: Annotated[int, Meta(description="FE subscriptions that were given up")] = 0
    again: Annotated[int, Meta(description="notifications that came again after a login, not being acknowledged")] = 0
    median: Annotated[float, Meta(description="seconds of the clock from an acknowledged report to a subscriber")] = 0.0
    ninety_fifth: Annotated[float, Meta(description="the same, within which 95 % came")] = 0.0
    late: Annotated[
        float, Meta(description="seconds after it was due within which the load generator sent 95 % of what it sent")
    ] = 0.0
    missing: Annotated[int, Meta(description="subscribers whose process of the load generator died")] = 0
    small: Annotated[str, Meta(description="what did not keep up on this machine, in words")] = ""


class RunTrouble(Row, frozen=True):
    """What went wrong in a run, in the words of whoever met it."""

    TABLE: ClassVar = "troubles"

    placement: Placement
    scheme: Scheme
    text: Annotated[str, Meta(description="a warning or an error of a process, or of a subscriber's call")]
    seed: Seed = 1
