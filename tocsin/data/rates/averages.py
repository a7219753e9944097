"""The arithmetic of data rates; the package says what is averaged, and why so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt

from tocsin.data.ids import ascending
from tocsin.data.rates.tracks import Tracks

Floats = npt.NDArray[np.float64]

_YOUNGEST: Final = 0.1
_FORGOTTEN_AFTER: Final = 40.0
_DIGITS: Final = 2


@dataclass
class _Channel:
    """When a channel was first watched and last executed, and the interval before that."""

    number: int
    begun: float
    last: float
    span: float = 0.0


@dataclass(frozen=True)
class Forecast:
    """λ of subscriptions until the channel's next execution is due, which is in so many seconds.

    None is of one of which nothing is known: the channel was not executed since it is there.
    """

    rates: list[float | None]
    seconds: float


class Rates:
    """Measured rates. Time is what callers say it is, in seconds from any origin; it is taken not to run backwards.

    May be called from any thread. Memory is for the subscriptions of the last forty windows that were begun or had
    results, and not forgotten: after that a rate is nothing, to sixteen digits.

    Args:
        window: the time constant of the average, in seconds.
    """

    def __init__(self, window: float) -> None:
        self._window = window
        self._channels: dict[str, _Channel] = {}
        self._numbered: list[_Channel] = []
        self._tracks = Tracks()
        self._lock = Lock()

    def resume(self, channel: str, last: float) -> None:
        """Tell of a channel that was executed before this began, at what time the last time was.

        What its next execution finds is then taken to be of all the time since.
        """
        with self._lock:
            self._channel(channel, last)

    def begin(self, now: float, channel: str, bes: Iterable[int]) -> None:
        """Tell of subscriptions that are new, when they attach; for those that are known it changes nothing.

        One that was not told of is taken to have been there, without results, since its channel was first heard of.
        """
        with self._lock:
            known = self._channel(channel, now)
            # Results of the next execution are those since the last one, also for who came in between.
            self._tracks.begin(ascending(bes), known.number, known.last)

    def add(self, now: float, channel: str, bes: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> None:
        """Tell of an execution: the bytes it found for these subscriptions, and nothing for the channel's others.

        To be called after every execution, also when it found nothing at all. Of a channel never heard of before, the
        results are taken to be those of one window.
        """
        with self._lock:
            known = self._channel(channel, now - self._window)
            now = max(now, known.last)
            known.span = now - known.last
            gain = _spread(known.span / self._window) / self._window
            known.last = now
            places = self._tracks.places(bes, known.number, known.begun)
            self._tracks.average[places] *= np.exp((self._tracks.at[places] - now) / self._window)
            self._tracks.at[places] = now
            np.add.at(self._tracks.average, places, sizes * gain)
            self._tracks.forget_before(known.number, now - _FORGOTTEN_AFTER * self._window)

    def rate(self, now: float, bes: npt.NDArray[np.int64]) -> Floats:
        """Bytes per second of each of these; zero for those never heard of."""
        with self._lock:
            return self._rates_at(now, *self._tracks.find(bes))

    def forecast(self, now: float, channel: str, bes: npt.NDArray[np.int64]) -> Forecast:
        """What brokers are told of subscriptions of a channel."""
        with self._lock:
            known = self._channels.get(channel.casefold())
            if known is None:
                return Forecast([None] * len(bes), 0.0)
            found, places = self._tracks.find(bes)
            rates = np.zeros(len(bes))
            rates[found] = self._averages(places, known.last, _overdue_seconds(known, now)).round(_DIGITS)
            found[found] = self._tracks.begun[places] < known.last
            told = [rate if is_known else None for rate, is_known in zip(rates.tolist(), found.tolist(), strict=True)]
            return Forecast(told, round(_due(known, now), _DIGITS))

    def due(self, now: float, channel: str) -> float:
        """In how many seconds the channel's next execution is due; 0 if that is late, or the channel unknown."""
        with self._lock:
            known = self._channels.get(channel.casefold())
            return _due(known, now) if known else 0.0

    def forget(self, bes: Iterable[int]) -> None:
        """Subscriptions that are no more."""
        with self._lock:
            self._tracks.forget(ascending(bes))

    def drop(self, channel: str) -> None:
        """A channel that is no more, and all its subscriptions."""
        with self._lock:
            known = self._channels.pop(channel.casefold(), None)
            if known:
                self._tracks.forget_before(known.number, np.inf)

    def _rates_at(self, now: float, found: npt.NDArray[np.bool_], places: npt.NDArray[np.intp]) -> Floats:
        """Of those that are found, at these places; zero for the others."""
        last, overdue = self._channel_times(now)
        numbers = self._tracks.channel[places]
        rates = np.zeros(len(found))
        rates[found] = self._averages(places, last[numbers], overdue[numbers])
        return rates

    def _averages(self, places: npt.NDArray[np.intp], last: Floats | float, overdue: Floats | float) -> Floats:
        """Of those at these places, whose channels were last executed then, and are late by so much."""
        fading = np.exp((self._tracks.at[places] - last - overdue) / self._window)
        watched = self._weight_of(last - self._tracks.begun[places])
        return np.asarray(self._tracks.average[places] * fading / watched)

    def _channel(self, name: str, begun: float) -> _Channel:
        known = self._channels.get(name.casefold())
        if known is None:
            known = self._channels[name.casefold()] = _Channel(len(self._numbered), begun, begun)
            self._numbered.append(known)
        return known

    def _channel_times(self, now: float) -> tuple[Floats, Floats]:
        """By channel number: when it was last executed, and by how much the next execution is late."""
        last = np.array([channel.last for channel in self._numbered])
        return last, np.array([_overdue_seconds(channel, now) for channel in self._numbered])

    def _weight_of(self, seconds: Floats) -> Floats:
        """The sum of the weights of that much time, of the one that all time has."""
        return -np.expm1(-np.maximum(seconds / self._window, _YOUNGEST))


def _spread(windows: float) -> float:
    """The average weight of the newest so many windows, in relation to that of this moment."""
    return float(-np.expm1(-windows) / windows) if windows > 0 else 1.0


def _due(channel: _Channel, now: float) -> float:
    return max(0.0, channel.last + channel.span - now)


def _overdue_seconds(channel: _Channel, now: float) -> float:
    return max(0.0, now - channel.last - channel.span)
