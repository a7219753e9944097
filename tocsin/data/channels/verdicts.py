"""What follows from a verdict: the results of all who work, which records somebody does without, and for how long."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tocsin.data.channels.apart import Apart
from tocsin.data.channels.blame import Verdict
from tocsin.data.channels.letters import Letter
from tocsin.data.channels.stains import MOST, Record, Stain
from tocsin.data.compiler.rewrite import BE


def letters_of(apart: Apart, verdict: Verdict) -> list[Letter]:
    """The records that somebody does without."""
    told: list[tuple[int, int | None]] = [(position, None) for position in sorted(verdict.poison)]
    told += [
        (record, int(apart.ids[place])) for place, records in verdict.without.items() for record in sorted(records)
    ]
    letters = [Letter(*apart.record(position), be, apart.reason) for position, be in told]
    everything = [(dataset, be) for be in sorted(apart.subscriptions(verdict.unclear)) for dataset in apart.news]
    return letters + [Letter(dataset, "all that was new", be, apart.reasons.get(be, "")) for dataset, be in everything]


def shares_of(apart: Apart, verdict: Verdict) -> list[DataFrame]:
    """The results of all that works, in shares."""

    def remaining(left_out: frozenset[int]) -> list[int]:
        return [position for position in range(apart.records) if position not in left_out]

    blamed = ", ".join(str(be) for be in sorted(apart.subscriptions(verdict.set_apart)))
    shares = []
    if len(verdict.set_apart) < len(apart.ids):
        # With nobody to serve, it might still fail with a record that nobody is served with.
        shares.append(apart.frame(f"{BE} NOT IN ({blamed})" if blamed else "true", remaining(verdict.poison)))
    for left_out in sorted(set(verdict.without.values()), key=sorted):
        some = ", ".join(str(apart.ids[place]) for place, records in verdict.without.items() if records == left_out)
        shares.append(apart.frame(f"{BE} IN ({some})", remaining(left_out)))
    return shares


def stains_of(apart: Apart, verdict: Verdict) -> list[Stain]:
    """The records that are to be left out from the beginning the next time, and for whom."""
    if verdict.poison:
        return [Stain(apart.lasting(verdict.poison), last=int(apart.ids[-1]))]
    groups: dict[frozenset[Record], list[int]] = {}
    for place, records in sorted(verdict.without.items()):
        groups.setdefault(apart.lasting(records), []).append(int(apart.ids[place]))
    return [Stain(records, tuple(bes)) for records, bes in groups.items()][:MOST]
