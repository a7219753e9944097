"""In which words channels and BE subscriptions were asked for.

Only the data cluster knows how a channel is spelled, and which parameters mean the same. What is asked for in other
words is asked of it; a few of the words that led to something are remembered.
"""

from __future__ import annotations

from typing import Any, Final

from tocsin.broker.holdings import BackendSubscription, Holdings, key
from tocsin.model.terms import Asker, admit, fill_in

MOST_WORDS: Final = 8
MOST_NAMES: Final = 1000


class Wording:
    """What is held, by the words in which it is asked for."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._names: dict[str, str] = {}

    def find(
        self, channel: str, parameters: list[dict[str, Any]], asker: Asker | None
    ) -> list[BackendSubscription | None]:
        """The BE subscriptions for these parameters, as far as they are held; ForbiddenError when it is known who may
        not."""
        known = self._holdings.channels.get(self._names.get(channel, channel))
        if known is None or known.terms is None:
            return [None] * len(parameters)
        if asker is not None:
            admit(known.terms, asker, f"channel {known.name}")
            parameters = [fill_in(known.terms, asker.name, one) for one in parameters]
        return [self._holdings.keys.get(key(channel, one)) for one in parameters]

    def may_mean(self, words: str, channel: str) -> bool:
        """Whether these words may name the channel: those never heard before may name any."""
        return self._names.get(words, channel) == channel

    def learn_name(self, words: str, name: str) -> None:
        """A channel asked for in these words has this name."""
        if len(self._names) >= MOST_NAMES:
            self._names.clear()
        self._names[words] = name

    def learn(self, backend: BackendSubscription, channel: str, parameters: dict[str, Any]) -> None:
        """Whoever asks in these words gets this BE subscription at once."""
        words = key(channel, parameters)
        if words not in self._holdings.keys and len(backend.keys) < MOST_WORDS:
            self._holdings.keys[words] = backend
            backend.keys.append(words)
