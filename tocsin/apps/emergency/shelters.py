"""The shelters of the city: records of the Shelters dataset."""

from __future__ import annotations

from typing import Any

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.city import City

NAMES = (
    "Abbey", "Alder", "Bishop", "Canal", "Cedar", "Chapel", "Elm", "Foundry", "Garden", "Harbour",
    "Hill", "Juniper", "Linden", "Market", "Mill", "Orchard", "Quay", "Rowan", "Station", "Tanner",
)  # fmt: skip
BUILDINGS = (
    "School", "Library", "Sports Hall", "Community Centre", "Church",
    "College", "Town Hall", "Metro Station", "Theatre", "Ice Rink",
)  # fmt: skip


def shelters(city: City, seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` shelters along the roads, each with a name of its own and room for 50 to 1,000 people."""
    rng = generator(seed, Purpose.SHELTERS)
    order = rng.permutation(len(NAMES) * len(BUILDINGS))
    records = []
    for number in range(count):
        x, y = city.roads.place(rng)
        name = _name(int(order[number % len(order)]), number // len(order))
        capacity = int(rng.integers(5, 101)) * 10
        records.append({"id": f"s{number}", "name": name, "x": round(x, 1), "y": round(y, 1), "capacity": capacity})
    return records


def _name(which: int, turn: int) -> str:
    """The name of that number; when all names are taken, the next turn adds a figure to each."""
    street, building = divmod(which, len(BUILDINGS))
    return f"{NAMES[street]} Street {BUILDINGS[building]}" + (f" {turn + 1}" if turn else "")
