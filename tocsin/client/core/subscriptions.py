"""What the application wants to be subscribed to, and what the broker has confirmed.

What is wanted is remembered and asked for on every new connection until it is confirmed or refused. What was confirmed
and is missing from a broker's welcome is asked for again; what was given up and is listed there is given up again. What
is being given up is given up entirely before anything else of its channel is asked for, since it may be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from tocsin.client.core import events
from tocsin.client.core.actions import Action, Confirmed, Ended, RequestRefused, Resumed, Troubled, Unsubscribed
from tocsin.client.core.inbox import Inbox
from tocsin.client.core.window import RequestWindow
from tocsin.client.core.wire import encode
from tocsin.client.rules import Rules
from tocsin.model.messages import LARGEST
from tocsin.model.subscriber import Error, Held, Subscribe, Unsubscribe

# What passes by itself; everything else is an answer.
PASSING: Final = frozenset({"busy", "unavailable", "storage", "internal"})
_ABSENT: Final = "not-found"
_GONE: Final = "gone"
_spell = msgspec.json.Encoder(order="deterministic").encode
# A channel's name as names are compared. Thousands of subscriptions are to few channels, and share what this gives.
_fold: Final = lru_cache(maxsize=1024)(str.casefold)


class WantedSubscription(msgspec.Struct):
    """What a call asks for: ``number`` once it is confirmed, ``request_id`` while it is asked for."""

    call: events.Subscribe
    number: int | None = None
    request_id: int | None = None
    leaving: bool = False

    @property
    def channel(self) -> str:
        """The channel's name, as names are compared."""
        return _fold(self.call.channel)

    def is_same(self, other: WantedSubscription) -> bool:
        """Whether both are known to be one subscription: by its number, or as they ask for it in the same words."""
        if self.number is not None and self.number == other.number:
            return True
        return self.channel == other.channel and self.call.parameters == other.call.parameters


@dataclass
class PendingRequest:
    """A request and whom its answer is for; an unsubscription nobody waits for has no ``ref``."""

    request: Subscribe | Unsubscribe
    ref: int | None


@dataclass
class PendingUnsubscribe:
    """A subscription that is being given up, by the request ``request_id``; ``words`` are what it was to."""

    request_id: int
    channel: str
    words: bytes


class WantedSubscriptions:
    """What is wanted, by the application's ``ref``; several may share a subscription.

    What can go wrong: an answer is lost with its connection (asked again); a request is refused for a while (asked
    again later) or for good (the application is told, once); the application gives up what is being asked for (the
    answer is awaited, then it is given up); a broker does not know what another had confirmed (asked again, and refused
    if its channel was dropped since); a subscription gets another number, or ends (the application is told).
    """

    def __init__(self, rules: Rules, inbox: Inbox, ids: Iterator[int]) -> None:
        self._rules = rules
        self._inbox = inbox
        self._ids = ids
        self._wanted: dict[int, WantedSubscription] = {}
        self._window: RequestWindow[PendingRequest] = RequestWindow(rules.window)
        self._leaving: dict[int, PendingUnsubscribe] = {}
        self._blocked: dict[int, WantedSubscription] = {}
        self._channels: dict[int, str] = {}
        # With what they are to, since numbers may change; it is spelled only where it is compared, which is seldom.
        self._known: dict[int, Held] = {}
        self._gone: dict[int, bytes] = {}
        self._welcomed = False

    def subscribe(self, call: events.Subscribe) -> list[Action]:
        """Remembers what is wanted, unless it is larger than brokers take. Raises TypeError if it is no JSON."""
        size = len(encode(Subscribe(LARGEST, call.channel, call.parameters, call.live)))
        if size > self._rules.message_bytes:
            message = f"a subscription of {size} bytes; at most {self._rules.message_bytes} are taken"
            return [RequestRefused(call.ref, "too-large", message)]
        self._wanted[call.ref] = self._blocked[call.ref] = WantedSubscription(call)
        self._unblock()
        return []

    def confirm(self, call: events.Subscribe, held: Held) -> None:
        """Takes as confirmed what nobody was asked for."""
        self._wanted[call.ref] = WantedSubscription(call, held.subscription)
        self._admit(held)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is asked for, waits to be, or is being given up."""
        return not (self._window or self._blocked or self._leaving)

    def unsubscribe(self, ref: int) -> list[Action]:
        """Gives up what was wanted."""
        wanted = self._wanted.get(ref)
        if wanted is None:
            return []
        sent = wanted.request_id is not None and self._window.was_sent(wanted.request_id)
        if wanted.number is not None and not sent:
            return self._leave(wanted, wanted.number)
        if wanted.number is not None:
            # The answer to asking for it once more may give it another number, or make it anew.
            number, wanted.number, wanted.leaving = wanted.number, None, True
            return [] if self._is_wanted(number) else self._drop(number)
        if sent or self._may_be_held(wanted) or not self._welcomed:
            wanted.leaving = True
            return []
        return self._forget(wanted)

    def welcomed(self, subscriptions: list[Held]) -> list[Action]:
        """A broker has said what it holds; what differs from what is wanted is asked for."""
        listed = {held.subscription for held in subscriptions}
        for held in subscriptions if self._leaving else ():
            self._recognise(held, listed)
        left = [self._settle_unsubscribe(number) for number in list(self._leaving) if number not in listed]
        for ref, wanted in self._wanted.items():
            if wanted.request_id is None and wanted.number not in listed and ref not in self._blocked:
                self._ask_for(wanted)
        unlisted = self._channels.keys() - listed - {wanted.number for wanted in self._wanted.values()}
        ended = [self._drop(number) for number in sorted(unlisted)]
        resumed = [self._resume(held) for held in subscriptions]
        spared = [] if self._welcomed else self._spare({_fold(held.channel) for held in subscriptions})
        self._welcomed = True
        self._window.again()
        return [action for actions in (*left, *ended, *resumed, *spared) for action in actions]

    def _spare(self, channels: set[str]) -> list[list[Action]]:
        """What was wanted and given up before any broker had said what it holds: unless it may be that, it is over."""
        unasked = [each for each in self._wanted.values() if each.leaving and each.channel not in channels]
        spared = [self._forget(wanted) for wanted in unasked]
        self._unblock()
        return spared

    def subscribed(self, id: int, held: Held) -> list[Action]:
        """A subscription is confirmed."""
        pending = self._window.get(id)
        wanted = self._wanted.get(pending.ref) if pending and pending.ref is not None else None
        if wanted is None or wanted.request_id != id:
            return []
        self._window.settle(id)
        if held.subscription in self._leaving and not wanted.leaving:
            # It is about to be given up by another call: this one is asked for again when that is done.
            self._block([wanted])
            return []
        before, wanted.number, wanted.request_id = wanted.number, held.subscription, None
        if wanted.leaving:
            self._known[held.subscription] = held
            return self._leave(wanted, held.subscription)
        self._admit(held)
        if held.live and self._is_wanted_whole(wanted):
            # Somebody else wants it, in other words.
            self._ask_for(wanted)
        if before == held.subscription:
            return []
        ended = self._drop(before) if before is not None and not self._is_wanted(before) else []
        return [*ended, Confirmed(wanted.call.ref, held)]

    def renewed(self, was: int, held: Held) -> list[Action]:
        """A subscription goes on, perhaps under another number."""
        if was in self._leaving and was != held.subscription:
            self._leave_instead(was, held.subscription)
            return []
        if was == held.subscription or was not in self._channels:
            return []
        wanted = [each for each in self._wanted.values() if each.number == was]
        self._inbox.renumber(was, held)
        self._admit(held)
        for each in wanted:
            each.number = held.subscription
        told: list[Action] = [Confirmed(each.call.ref, held) for each in wanted]
        return [*(told or [Resumed(held)]), *self._drop(was)]

    def ended(self, number: int, code: str, message: str) -> list[Action]:
        """A subscription is no more, though nobody here has given it up."""
        if number in self._leaving:
            return self._settle_unsubscribe(number)
        wanted = [each for each in self._wanted.values() if each.number == number]
        for each in wanted:
            self._forget(each)
        if number in self._known:
            # Should a broker that has not heard of it list it again, it is given up there.
            self._gone[number] = _words(self._known[number])
        self._unblock()
        return [*self._drop(number), *(RequestRefused(each.call.ref, code, message) for each in wanted)]

    def unsubscribed(self, id: int) -> list[Action]:
        """A subscription is given up."""
        pending = self._window.get(id)
        return (
            self._settle_unsubscribe(pending.request.subscription)
            if pending and isinstance(pending.request, Unsubscribe)
            else []
        )

    def failed(self, now: float, error: Error) -> list[Action] | None:
        """A request could not be acted on; None if it is not one of these."""
        pending = self._window.get(error.id)
        if pending is None or error.id is None:
            return None
        if error.code in PASSING or error.retry_after is not None:
            self._window.postpone(error.id, now + (error.retry_after or self._rules.retry_seconds))
            return []
        if isinstance(pending.request, Unsubscribe):
            told: list[Action] = [] if error.code == _ABSENT else [Troubled(error.code, error.message)]
            return [*told, *self._settle_unsubscribe(pending.request.subscription)]
        return self._refuse(pending, error)

    def due(self, now: float) -> list[Subscribe | Unsubscribe]:
        """The requests that are to be sent now."""
        return [pending.request for pending in self._window.due(now)]

    def wake(self) -> float | None:
        """When a request is due."""
        return self._window.wake()

    def _ask_for(self, wanted: WantedSubscription) -> None:
        call, wanted.request_id = wanted.call, next(self._ids)
        known = self._inbox.incarnation(wanted.number) if wanted.number is not None else ""
        # It is held once for all who want it, and live for all of them: only if nobody loses anything by it.
        live = call.live and not self._is_wanted_whole(wanted)
        request = Subscribe(wanted.request_id, call.channel, call.parameters, live, known)
        self._window.add(wanted.request_id, PendingRequest(request, call.ref))

    def _is_wanted_whole(self, wanted: WantedSubscription) -> bool:
        """Whether the same is also wanted with what is found while nobody is connected."""
        return any(not other.call.live and other.is_same(wanted) for other in self._wanted.values())

    def _block(self, unsent: list[WantedSubscription]) -> None:
        for wanted in unsent:
            if wanted.request_id is not None:
                self._window.settle(wanted.request_id)
            wanted.request_id = None
            self._blocked[wanted.call.ref] = wanted

    def _unblock(self) -> None:
        """Asks for what waited for others of its channel to be given up."""
        if not self._blocked:
            return
        parting = {leaving.channel for leaving in self._leaving.values()}
        parting |= {one.channel for ref, one in self._wanted.items() if one.leaving and ref not in self._blocked}
        for ref, wanted in list(self._blocked.items()):
            if wanted.channel not in parting:
                del self._blocked[ref]
                self._ask_for(wanted)
                if wanted.leaving:
                    parting.add(wanted.channel)

    def _admit(self, held: Held) -> None:
        self._channels[held.subscription] = _fold(held.channel)
        self._known[held.subscription] = held
        if self._gone:
            words = _words(held)
            self._gone = {number: gone for number, gone in self._gone.items() if gone != words}
            self._gone.pop(held.subscription, None)
        self._inbox.admit(held)

    def _drop(self, number: int) -> list[Action]:
        self._inbox.forget(number)
        self._known.pop(number, None)
        return [Ended(number)] if self._channels.pop(number, None) is not None else []

    def _is_wanted(self, number: int) -> bool:
        return any(wanted.number == number for wanted in self._wanted.values())

    def _may_be_held(self, wanted: WantedSubscription) -> bool:
        """Whether it may be one from before this program started, which only the answer to asking for it would tell."""
        known = {each.number for each in self._wanted.values()}
        return any(channel == wanted.channel and number not in known for number, channel in self._channels.items())

    def _resume(self, held: Held) -> list[Action]:
        number = held.subscription
        if number in self._leaving:
            return []
        if number in self._channels:
            self._admit(held)
            return []
        channel = _fold(held.channel)
        # It may be what a request brought about whose answer was lost: that answer decides when it comes again.
        asked = [wanted for wanted in self._wanted.values() if wanted.number is None and wanted.channel == channel]
        if any(wanted.leaving for wanted in asked):
            return []
        gone = bool(self._gone) and (number in self._gone or _words(held) in self._gone.values())
        if gone and not any(wanted.request_id and self._window.was_sent(wanted.request_id) for wanted in asked):
            self._block(asked)
            self._ask_to_leave(number, channel, _words(held), None)
            return []
        self._admit(held)
        return [Resumed(held)]

    def _ask_to_leave(self, number: int, channel: str, words: bytes, ref: int | None) -> None:
        if number in self._leaving:
            self._window.settle(self._leaving[number].request_id)
        id = next(self._ids)
        self._leaving[number] = PendingUnsubscribe(id, channel, words)
        self._window.add(id, PendingRequest(Unsubscribe(id, number), ref))

    def _leave(self, wanted: WantedSubscription, number: int) -> list[Action]:
        told = self._forget(wanted)
        if self._is_wanted(number):
            return told
        held = self._known[number]
        self._gone[number] = words = _words(held)
        self._ask_to_leave(number, wanted.channel, words, wanted.call.ref)
        return [*self._drop(number), *self._leave_namesakes(wanted.channel, held)]

    def _leave_namesakes(self, channel: str, held: Held) -> list[Action]:
        """What a broker has listed under another number, and was being asked about."""
        words = _words(held)
        alike = {number: each for number, each in self._known.items() if each.parameters == held.parameters}
        same = [number for number, each in alike.items() if _words(each) == words and not self._is_wanted(number)]
        for number in same:
            self._gone[number] = words
            self._ask_to_leave(number, channel, words, None)
        return [action for number in same for action in self._drop(number)]

    def _recognise(self, held: Held, listed: set[int]) -> None:
        """What is being given up may be listed under another number than it had."""
        if held.subscription in self._leaving or held.subscription in self._channels:
            return
        for number, leaving in list(self._leaving.items()):
            if number not in listed and leaving.words == _words(held):
                self._leave_instead(number, held.subscription)

    def _leave_instead(self, was: int, number: int) -> None:
        leaving = self._leaving.pop(was)
        pending = self._window.get(leaving.request_id)
        self._window.settle(leaving.request_id)
        self._ask_to_leave(number, leaving.channel, leaving.words, pending.ref if pending else None)

    def _settle_unsubscribe(self, number: int) -> list[Action]:
        pending = self._window.get(self._leaving[number].request_id)
        self._window.settle(self._leaving.pop(number).request_id)
        self._unblock()
        return [Unsubscribed(pending.ref)] if pending and pending.ref is not None else []

    def _forget(self, wanted: WantedSubscription) -> list[Action]:
        ref = wanted.call.ref
        del self._wanted[ref]
        self._blocked.pop(ref, None)
        if wanted.request_id is not None:
            self._window.settle(wanted.request_id)
        return [Unsubscribed(ref)]

    def _refuse(self, pending: PendingRequest, error: Error) -> list[Action]:
        wanted = self._wanted.get(pending.ref) if pending.ref is not None else None
        if wanted is None:
            return []
        told = self._forget(wanted)
        number = wanted.number
        known = self._known.get(number) if number is not None and error.code == _GONE else None
        ended = self._drop(number) if number is not None and not self._is_wanted(number) else []
        # A broker that has not heard of the drop may have listed it under another number.
        ended += self._leave_namesakes(wanted.channel, known) if known else []
        self._unblock()
        return told if wanted.leaving else [*ended, RequestRefused(wanted.call.ref, error.code, error.message)]


def _words(held: Held) -> bytes:
    """What a subscription is to, as the data cluster spells it: it may get another number, but these stay."""
    return _spell((_fold(held.channel), held.parameters))
