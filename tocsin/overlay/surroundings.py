"""What an edge says of its load, what it hears of others', and what the detection makes of both."""

from __future__ import annotations

from math import inf

from tocsin.overlay.detection import (
    Attempts,
    Availability,
    Neighbour,
    OffloadAction,
    Stabilisation,
    availability,
    balanced_with,
    detect,
)
from tocsin.overlay.gauges import Gauges
from tocsin.overlay.limits import FORGET_SECONDS, OverlayLimits
from tocsin.overlay.links import Links, address_filter
from tocsin.overlay.load import BrokerLoad, Resource
from tocsin.overlay.messages import ClusterView, Control, LocalLoad
from tocsin.overlay.post import Post
from tocsin.overlay.subscriptions import Subscriptions
from tocsin.overlay.tuning import Tuning


class Surroundings:
    """An edge among the others of its cluster, and for a while of another one.

    Load messages are control publications with the cluster as an attribute. A broker that is silent for long does not
    count, and another cluster counts only as long as the edge's head goes on to say so.

    ``busy`` is whether the edge is in a session.
    """

    def __init__(
        self,
        name: str,
        cluster: str,
        post: Post,
        links: Links,
        subscriptions: Subscriptions,
        gauges: Gauges,
        tuning: Tuning,
        limits: OverlayLimits,
        url: str = "",
    ) -> None:
        self._name, self._cluster, self._url = name, cluster, url
        self._post, self._links, self._subscriptions, self._gauges = post, links, subscriptions, gauges
        self._tuning, self._limits = tuning, limits
        self._stabilisation, self._attempts = Stabilisation(tuning), Attempts(tuning)
        self._heard: dict[str, tuple[float, LocalLoad]] = {}
        self._joined: list[str] = []
        self._viewed = -inf
        self._next_report = self._next_detection = inf
        self.busy = False
        links.want_control(address_filter("load", cluster))
        links.want_control(address_filter("edges", cluster))

    @property
    def joined(self) -> list[str]:
        """The other clusters whose load messages it hears."""
        return self._joined

    def load(self) -> BrokerLoad | None:
        """The edge's own."""
        return self._gauges.load(self._post.now, len(self._subscriptions))

    def state(self) -> Availability:
        """Whether it is available for balancing; what has not been measured is not."""
        load = self.load()
        overloaded = load is None or self._tuning.exceeds_lower(load.ratios)
        return availability(overloaded, self.busy, self._stabilisation.active)

    def measured(self) -> None:
        """The driver has measured something, so that there is something to say."""
        if self._next_report == inf:
            self._next_report = self._post.now
            self._next_detection = self._post.now + self._limits.detect_seconds

    def stabilise(self) -> None:
        """A session is over."""
        self._stabilisation.begin(self._post.now)

    def send_nobody(self, edge: str) -> None:
        """Nobody is to go to another edge."""
        if (load := self.load()) and (other := self._neighbour(edge)):
            self._attempts.send_nobody(load.metrics, other)

    def get_nobody(self, edge: str) -> None:
        """Nobody is to come from another edge, which has more."""
        if (load := self.load()) and (other := self._neighbour(edge)):
            self._attempts.get_nobody(load.metrics, other)

    def hear(self, load: LocalLoad) -> None:
        """Another edge says how it is."""
        self._heard[load.broker] = self._post.now, load

    def address(self, edge: str) -> str:
        """Where subscribers reach another edge that has said how it is."""
        _, load = self._heard.get(edge, (0.0, None))
        return (load.url if load else "") or edge

    def silent_at(self, edge: str) -> float:
        """When another edge does not count any more unless it says something; never, if it has not said anything."""
        return self._heard[edge][0] + self._limits.silent_seconds if edge in self._heard else inf

    def view(self, view: ClusterView) -> None:
        """The head says which other clusters count."""
        self._viewed = self._post.now
        self._join(view.clusters)

    def due(self, now: float) -> list[OffloadAction]:
        """Says what is to be said; what could be done about the load, when the detection runs."""
        if self._viewed + self._limits.silent_seconds <= now:
            self._join([])
        if self._next_report <= now:
            self._next_report = now + self._limits.report_seconds
            self._publish()
        if self._next_detection > now:
            return []
        self._next_detection = now + self._limits.detect_seconds
        return self._detect(now)

    def wake(self) -> float:
        """When there is something to do."""
        ends = self._viewed + self._limits.silent_seconds if self._joined else inf
        return min(self._next_report, self._next_detection, ends)

    def _join(self, clusters: list[str]) -> None:
        for cluster in clusters:
            if cluster not in self._joined:
                self._links.want_control(address_filter("load", cluster))
        for cluster in self._joined:
            if cluster not in clusters:
                self._links.give_up_control(address_filter("load", cluster))
                self._heard = {name: each for name, each in self._heard.items() if each[1].cluster != cluster}
        self._joined = list(clusters)

    def _neighbours(self) -> list[Neighbour]:
        since = self._post.now - self._limits.silent_seconds
        fresh = [load for heard, load in self._heard.values() if heard > since]
        return [Neighbour(load.broker, Availability(load.state), load.metrics) for load in fresh]

    def _neighbour(self, edge: str) -> Neighbour | None:
        return next((each for each in self._neighbours() if each.name == edge), None)

    def _publish(self) -> None:
        since = self._post.now - FORGET_SECONDS
        self._heard = {name: each for name, each in self._heard.items() if each[0] > since}
        load = self.load()
        if load is None:
            return
        even = balanced_with(load.metrics, self._neighbours(), self._tuning, self._tuning.local, self._attempts)
        cpu, memory = load.ratios[Resource.CPU], load.ratios[Resource.MEMORY]
        message = LocalLoad(self._name, self._cluster, load.metrics, self.state().value, even, self._url, cpu, memory)
        self._links.route(Control({"load": self._cluster}, self._name, message))

    def _detect(self, now: float) -> list[OffloadAction]:
        load = self.load()
        if load is None:
            return []
        self._stabilisation.observe(now, load.metrics)
        tuning, metrics, neighbours = self._tuning, load.metrics, self._neighbours()
        if not tuning.overloaded_resources(load.ratios):
            neighbours = [each for each in neighbours if not self._attempts.sent_nobody(metrics, each)]
        return detect(metrics, load.ratios, self.state(), neighbours, tuning, tuning.local)
