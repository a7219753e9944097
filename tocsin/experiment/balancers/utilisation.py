"""The ruler by which both balancers are judged: what brokers have to do, by who is where and what is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.balance.model.workload import Floats
from tocsin.experiment.balancers.matches import MatchedPublications
from tocsin.experiment.padres.scenario import BrokerMachine

EdgeAssignment = npt.NDArray[np.int16]
"""The broker of each subscriber by its place among the edges, or NOWHERE."""
NOWHERE: Final = -1


class Utilisation(NamedTuple):
    """Of each broker, in a span of time.

    Args:
        received: publications that came to it.
        delivered: publications that it sent to subscribers, once for each.
        traffic: bytes per second that come in and go out, over its bandwidth.
        matching: the part of the time that its processor takes to match: what comes, by what each takes.
    """

    subscribers: npt.NDArray[np.int64]
    received: npt.NDArray[np.int64]
    delivered: npt.NDArray[np.int64]
    traffic: Floats
    matching: Floats


def utilise(
    published: MatchedPublications,
    seconds: float,
    assignment: EdgeAssignment,
    machines: Sequence[BrokerMachine],
    matching: float,
) -> Utilisation:
    """What publications are to brokers with these subscribers, if they come within so many seconds.

    ``matching`` is what matching one against one subscription takes on a processor of 1 MHz.
    """
    brokers = len(machines)
    edge = assignment[published.who].astype(np.int64)
    publication = np.repeat(np.arange(len(published)), np.diff(published.indptr))
    here = edge != NOWHERE
    counts = np.bincount(publication[here] * brokers + edge[here], minlength=len(published) * brokers)
    counts = counts.reshape(len(published), brokers)
    comes = counts > 0
    load = published.sizes @ (counts + comes) / seconds
    subscribers = np.bincount(assignment[assignment != NOWHERE], minlength=brokers)
    each = np.array([matching / machine.megahertz for machine in machines])
    return Utilisation(
        subscribers,
        comes.sum(axis=0),
        counts.sum(axis=0),
        load / np.array([machine.bandwidth for machine in machines]),
        comes.sum(axis=0) / seconds * subscribers * each,
    )
