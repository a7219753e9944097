"""What must hold once everything has healed."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tocsin.client.core.actions import ConnectionState
from tocsin.simulate.system import System

# Brokers report a rate again when it differs by 10 %, and it fades between two reports.
TOLERANCE = 0.25


def violations(system: System, away: Collection[str] = ()) -> list[str]:
    """Everything that is not as it should be, when those are ``away`` for long and all others are there."""
    diaries = [*system.diaries.values(), *system.former]
    return [
        *(sentence for diary in diaries for sentence in diary.wrong(system.cluster)),
        *(sentence for name in system.people if name not in away for sentence in assignment_violations(system, name)),
        *(sentence for name in away if name in system.people for sentence in absence_violations(system, name)),
        *(sentence for name in system.people for sentence in weight_violations(system, name, name in away)),
        *(sentence for name in system.departed for sentence in departure_violations(system, name)),
        *attachment_violations(system),
        *load_violations(system),
    ]


def assignment_violations(system: System, name: str) -> list[str]:
    """A subscriber is on exactly one broker, by its own word, its broker's and the coordinator's, with all it wants."""
    core, person = system.coordinator.core, system.people[name]
    assignment = core.view.assignment(name)
    staying = [host for host, broker in system.brokers.items() if name in broker.core.holdings.stays]
    if person.state is not ConnectionState.SERVING:
        return [
            f"{name} is {person.state}, not served; the coordinator has it on {assignment.broker}, its stays: {staying}"
        ]
    at = [link.hosts[1] for link in person.links.values()]
    if not at == staying == [assignment.broker] or assignment.destination:
        known = f"{assignment.broker} → {assignment.destination}" if assignment.destination else assignment.broker
        return [f"{name} is connected to {at}, stays on {staying}, and is on {known} by the coordinator"]
    stay = system.brokers[staying[0]].core.holdings.stays[name]
    if stay.session is None or stay.number != assignment.stay:
        return [f"{name} has stay {stay.number} on {staying[0]} and {assignment.stay} by the coordinator"]
    return subscription_violations(system, name, set(stay.subscriptions))


def absence_violations(system: System, name: str) -> list[str]:
    """What somebody holds who is away is kept on one broker, as the coordinator knows it."""
    core = system.coordinator.core
    assignment, stored = core.view.assignment(name), {each.subscription for each in core.view.subscriptions_of(name)}
    stays = [(host, stay) for host in system.brokers if (stay := system.brokers[host].core.holdings.stays.get(name))]
    kept = [(host, stay.number, set(stay.subscriptions)) for host, stay in stays]
    if kept == ([(assignment.broker, assignment.stay, stored)] if assignment.broker else []):
        return []
    return [f"{name} is away, kept as {kept}, and by the coordinator on {assignment.broker} with {sorted(stored)}"]


def weight_violations(system: System, name: str, away: bool) -> list[str]:
    """Whoever is away weighs nothing, and everybody else does; one who never came is not known."""
    core = system.coordinator.core
    if core.view.is_suspended(name) == away or not core.view.traces(name):
        return []
    return [f"{name} {'is away, and weighs something' if away else 'is here, and weighs nothing'}"]


def departure_violations(system: System, name: str) -> list[str]:
    """Whoever has left for good is nowhere."""
    known = system.coordinator.core.view.traces(name)
    staying = [host for host, broker in system.brokers.items() if name in broker.core.holdings.stays]
    return [f"{name} has left, but is {known} by the coordinator, and stays on {staying}"] if known or staying else []


def subscription_violations(system: System, name: str, held: set[int]) -> list[str]:
    """A subscriber has what it wants, by its own word, its broker's and the coordinator's."""
    diary = system.diaries[name]
    wanted = {system.cluster.be(desired.channel, desired.parameters) for desired in system.desired[name].values()}
    stored = {each.subscription for each in system.coordinator.core.view.subscriptions_of(name)}
    undecided = {system.cluster.present(be) for be in diary.undecided} - wanted
    if held == stored and wanted == held - undecided == set(diary.open) - undecided:
        return []
    return [
        f"{name} wants {sorted(wanted)}, is told it has {sorted(diary.open)}, its broker holds {sorted(held)}, "
        f"the coordinator {sorted(stored)}; undecided are {sorted(undecided)}"
    ]


def attachment_violations(system: System) -> list[str]:
    """The data cluster counts exactly those BE subscriptions to a broker that somebody there subscribes to."""
    needed: dict[int, set[str]] = {be: set() for be in system.cluster.attached}
    for host, broker in system.brokers.items():
        for stay in broker.core.holdings.stays.values():
            for be in stay.subscriptions:
                needed.setdefault(be, set()).add(host)
    attached = {be: brokers for be, brokers in system.cluster.attached.items() if brokers != needed[be]}
    lost = {be: hosts for be, hosts in needed.items() if be not in system.cluster.attached}
    return [
        *(
            f"BE subscription {be} is attached to {sorted(brokers)}, but needed by {sorted(needed[be])}"
            for be, brokers in attached.items()
        ),
        *(f"BE subscription {be} is needed by {sorted(hosts)}, but there is none" for be, hosts in lost.items()),
    ]


def load_violations(system: System) -> list[str]:
    """The coordinator reckons with the loads that brokers have, and with λ as the data cluster measures it."""
    core, now, found = system.coordinator.core, system.clock.now, []
    held: dict[int, None] = {}
    for host, broker in system.brokers.items():
        held |= dict.fromkeys(broker.core.holdings.backends)
        member = core.view.registry.member(host)
        said, load = (member.load.incoming, member.load.outgoing), broker.core.load(now)
        if not all(_same(one, other) for one, other in zip(said, load, strict=True)):
            found.append(f"{host} has I and O {load}, but has reported {said}")
        found += _broker_load_violations(system, host)
    rates = system.cluster.rates.rate(now, np.array(list(held), np.int64)).tolist()
    return found + [
        f"BE subscription {be} brings {rate:.1f} bytes/s, but the coordinator reckons with {core.view.rate(be)}"
        for be, rate in zip(held, rates, strict=True)
        if not _same(core.view.rate(be), rate)
    ]


def _broker_load_violations(system: System, host: str) -> list[str]:
    """A broker's load in the live workload is that of the subscriptions of those who are there."""
    core = system.coordinator.core
    live, number = core.view.live, core.view.broker_number(host)
    if number is None:
        return [f"{host} takes no part in balancing"]
    at = live.brokers.tolist().index(number)
    stays = system.brokers[host].core.holdings.stays.values()
    held = [be for stay in stays if stay.session for be in stay.subscriptions]
    incoming = sum(core.view.rate(be) for be in set(held))
    outgoing = sum(core.view.rate(be) for be in held)
    figures = live.figures()
    if (incoming, outgoing) == (int(figures.incoming[at]), int(figures.outgoing[at])):
        return []
    counted = (int(figures.incoming[at]), int(figures.outgoing[at]))
    return [f"{host} holds I and O {(incoming, outgoing)}, but the coordinator counts {counted}"]


def _same(said: float, measured: float) -> bool:
    return measured * (1 - TOLERANCE) - 1 <= said <= measured * (1 + TOLERANCE) + 1
