"""What every broker holds and carries, kept up to date entry by entry: n_jk, I and O of equations 1 to 5."""

from __future__ import annotations

from tocsin.balance.compiled import compiled
from tocsin.balance.live.numbering import grow
from tocsin.balance.live.rows import RowPool
from tocsin.balance.model.workload import Int32s, Int64s

NOWHERE = -1


class LiveLoads:
    """Counts and loads of all brokers. ``held[k, j]`` is n_jk; there may be room for more of both.

    Args:
        rates: λ of each BE subscription.
    """

    def __init__(self, rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s) -> None:
        self.rates = rates.copy()
        self.held = held
        self.incoming = incoming
        self.outgoing = outgoing

    def extend_to(self, subscriptions: int, brokers: int) -> None:
        """Makes sure that so many BE subscriptions and brokers are counted."""
        self.rates = grow(self.rates, subscriptions)
        self.held = grow(grow(self.held, subscriptions), brokers, axis=1)
        self.incoming, self.outgoing = grow(self.incoming, brokers), grow(self.outgoing, brokers)

    def carry(self, subscriptions: Int32s, source: int, destination: int) -> None:
        """Takes a subscriber's BE subscriptions from one broker to another; either may be ``NOWHERE``."""
        carry_row(self.rates, self.held, self.incoming, self.outgoing, subscriptions, source, destination)

    def carry_all(self, rows: RowPool, who: Int64s, sources: Int32s, destinations: Int32s) -> None:
        """Takes the rows of many from one broker to another."""
        carry_rows(
            self.rates,
            self.held,
            self.incoming,
            self.outgoing,
            rows.start[who],
            rows.length[who],
            rows.pool,
            sources,
            destinations,
        )

    def enter(self, brokers: Int32s, subscriptions: Int32s) -> None:
        """Counts one more holder of ``subscriptions[n]`` on ``brokers[n]``, for every n."""
        add_holders(self.rates, self.held, self.incoming, self.outgoing, subscriptions, brokers)

    def leave(self, brokers: Int32s, subscriptions: Int32s) -> None:
        """Counts one holder less of ``subscriptions[n]`` on ``brokers[n]``, for every n."""
        remove_holders(self.rates, self.held, self.incoming, self.outgoing, subscriptions, brokers)

    def rate(self, subscriptions: Int64s, rates: Int64s) -> None:
        """Sets the rate of ``subscriptions[n]`` to ``rates[n]``, for every n, one after the other."""
        set_rates(self.rates, self.held, self.incoming, self.outgoing, subscriptions, rates)

    def holders(self, subscription: int) -> int:
        """How many subscribers hold a BE subscription."""
        return int(self.held[subscription].sum())


@compiled
def add_holder(rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s, k: int, j: int) -> None:
    """One more holder."""
    if held[k, j] == 0:
        incoming[j] += rates[k]
    held[k, j] += 1
    outgoing[j] += rates[k]


@compiled
def remove_holder(rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s, k: int, j: int) -> None:
    """One holder less."""
    held[k, j] -= 1
    outgoing[j] -= rates[k]
    if held[k, j] == 0:
        incoming[j] -= rates[k]


@compiled
def carry_row(
    rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s, row: Int32s, source: int, destination: int
) -> None:
    """A row goes from one broker to another."""
    for k in row:
        if source != NOWHERE:
            remove_holder(rates, held, incoming, outgoing, k, source)
        if destination != NOWHERE:
            add_holder(rates, held, incoming, outgoing, k, destination)


@compiled
def carry_rows(
    rates: Int64s,
    held: Int32s,
    incoming: Int64s,
    outgoing: Int64s,
    starts: Int64s,
    lengths: Int32s,
    pool: Int32s,
    sources: Int32s,
    destinations: Int32s,
) -> None:
    """Many rows of a pool, each from its broker to another."""
    for at in range(len(starts)):
        row = pool[starts[at] : starts[at] + lengths[at]]
        carry_row(rates, held, incoming, outgoing, row, sources[at], destinations[at])


@compiled
def add_holders(rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s, row: Int32s, brokers: Int32s) -> None:
    """One more holder of each of a row, on the broker beside it."""
    for at in range(len(row)):
        add_holder(rates, held, incoming, outgoing, row[at], brokers[at])


@compiled
def remove_holders(
    rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s, row: Int32s, brokers: Int32s
) -> None:
    """One holder less of each of a row, on the broker beside it."""
    for at in range(len(row)):
        remove_holder(rates, held, incoming, outgoing, row[at], brokers[at])


@compiled
def set_rates(
    rates: Int64s, held: Int32s, incoming: Int64s, outgoing: Int64s, subscriptions: Int64s, wanted: Int64s
) -> None:
    """New rates, and what they change on every broker."""
    for at in range(len(subscriptions)):
        k = subscriptions[at]
        more = wanted[at] - rates[k]
        rates[k] = wanted[at]
        if more == 0:
            continue
        for j in range(held.shape[1]):
            if held[k, j] > 0:
                incoming[j] += more
                outgoing[j] += more * held[k, j]
