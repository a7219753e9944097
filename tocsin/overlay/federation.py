"""What a head knows of its own cluster and of those next to it, and what it says of its own."""

from __future__ import annotations

from math import inf

from tocsin.overlay.detection import (
    Attempts,
    Availability,
    Neighbour,
    OffloadAction,
    Stabilisation,
    availability,
    detect,
)
from tocsin.overlay.limits import FORGET_SECONDS, OverlayLimits
from tocsin.overlay.links import Links, address_filter
from tocsin.overlay.load import Metrics, Resource, average
from tocsin.overlay.messages import ClusterLoad, LocalLoad
from tocsin.overlay.post import Post
from tocsin.overlay.tuning import Tuning


class Federation:
    """A cluster among those next to it, by the averages of its edges.

    ``busy`` is whether the cluster is in a session.
    """

    def __init__(self, name: str, post: Post, links: Links, tuning: Tuning, limits: OverlayLimits) -> None:
        self._name, self._post, self._links, self._tuning, self._limits = name, post, links, tuning, limits
        self._stabilisation, self._attempts = Stabilisation(tuning), Attempts(tuning)
        self._edges: dict[str, tuple[float, LocalLoad]] = {}
        self._clusters: dict[str, tuple[float, ClusterLoad]] = {}
        self._next_report = self._next_detection = inf
        self.busy = False
        links.want_control(address_filter("load", name))

    def edges(self, cluster: str) -> list[LocalLoad]:
        """What the edges of a cluster said last, those that are silent aside."""
        since = self._post.now - self._limits.silent_seconds
        return [load for heard, load in self._edges.values() if heard > since and load.cluster == cluster]

    def is_cluster(self, name: str) -> bool:
        """Whether a cluster of this name has said how it is."""
        return name in self._clusters

    def metrics(self) -> Metrics | None:
        """The averages of its own edges; None without any."""
        loads = self.edges(self._name)
        return average([load.metrics for load in loads]) if loads else None

    def state(self) -> Availability:
        """Whether the cluster is available for balancing: not if one of its edges is overloaded."""
        states = [load.state for load in self.edges(self._name)]
        overloaded = not states or Availability.OVERLOADED.value in states
        return availability(overloaded, self.busy, self._stabilisation.active)

    def stabilise(self) -> None:
        """A session is over."""
        self._stabilisation.begin(self._post.now)

    def end_in_vain(self, cluster: str) -> None:
        """Edges have come to balance with another cluster's, as far as they can: what is left is lived with."""
        metrics, others = self.metrics(), [each for each in self._neighbours() if each.name == cluster]
        if metrics and others:
            self._attempts.send_nobody(metrics, others[0])

    def hear_edge(self, load: LocalLoad) -> None:
        """An edge says how it is, of this cluster or of one in a session with it."""
        self._edges[load.broker] = self._post.now, load
        if self._next_report == inf:
            self._next_report = self._post.now
            self._next_detection = self._post.now + self._limits.detect_seconds

    def hear_cluster(self, load: ClusterLoad, sender: str) -> None:
        """A cluster says how it is. A head without edges only passes it on, once more."""
        if len(self._links.open) > len(self._links.heads):
            self._clusters[load.cluster] = self._post.now, load
        elif load.hops:
            further = ClusterLoad(load.cluster, load.metrics, load.state, load.hops - 1)
            for link in self._links.heads:
                if link != sender:
                    self._post.send(link, further)

    def due(self, now: float) -> list[OffloadAction]:
        """Says what is to be said; what could be done about the load, when the detection runs."""
        if self._next_report <= now:
            self._next_report = now + self._limits.report_seconds
            self._publish()
        if self._next_detection > now:
            return []
        self._next_detection = now + self._limits.detect_seconds
        return self._detect(now)

    def wake(self) -> float:
        """When there is something to do."""
        return min(self._next_report, self._next_detection)

    def _publish(self) -> None:
        since = self._post.now - FORGET_SECONDS
        self._edges = {name: each for name, each in self._edges.items() if each[0] > since}
        self._clusters = {name: each for name, each in self._clusters.items() if each[0] > since}
        metrics = self.metrics()
        if metrics is None:
            return
        for link in self._links.heads:
            self._post.send(link, ClusterLoad(self._name, metrics, self.state().value, hops=1))

    def _detect(self, now: float) -> list[OffloadAction]:
        metrics = self.metrics()
        if metrics is None:
            return []
        self._stabilisation.observe(now, metrics)
        tuning, ratios, neighbours = self._tuning, self._ratios(metrics), self._neighbours()
        if not tuning.overloaded_resources(ratios):
            neighbours = [each for each in neighbours if not self._attempts.sent_nobody(metrics, each)]
        return detect(metrics, ratios, self.state(), neighbours, tuning, tuning.between_clusters)

    def _ratios(self, metrics: Metrics) -> dict[Resource, float]:
        """By which the cluster is overloaded: the averages of input and output; and once none of its edges can take
        load from another, by whichever ratio, the highest of each."""
        ratios = [load.ratios for load in self.edges(self._name)]
        if all(map(self._tuning.exceeds_lower, ratios)):
            return {resource: max(each[resource] for each in ratios) for resource in Resource}
        return {Resource.INPUT: metrics.input, Resource.OUTPUT: metrics.output}

    def _neighbours(self) -> list[Neighbour]:
        since = self._post.now - self._limits.silent_seconds
        fresh = [load for heard, load in self._clusters.values() if heard > since]
        return [Neighbour(load.cluster, Availability(load.state), load.metrics) for load in fresh]
