"""What planners are expected to reach, kind by kind, on one core."""

from __future__ import annotations

HIGHEST = {
    "shuffle": {"P": 1.175, "S": 1.037, "SC": 1.021, "L": 1.098, "LC": 1.093, "XL": 1.091},
}
"""The highest load, in multiples of LB1."""

MIGRATED = {"SC": 1.033, "L": 1.154, "LC": 1.097, "XL": 1.150}
"""To where few moves should bring it, in multiples of LB1."""

MOVED = {"migrate to gsh": {"S": 1.06}, "migrate to target": {"SC": 1.157, "L": 1.049, "XL": 1.038}}
"""How many move, in multiples of the bound."""

_PAPERS = {"S": 0.01, "XL": 2.0}
_OURS = {"S": 0.1, "L": 3.0, "XL": 30.0}
SECONDS = {
    "ldm": _PAPERS,
    "sdm": _PAPERS,
    "gsh": _PAPERS,
    "shuffle": _OURS,
    "migrate": _OURS,
    "migrate to gsh": _OURS,
    "migrate to target": _OURS,
}

MEBIBYTES = {"shuffle": {"XL": 1024.0}, "migrate": {"XL": 1024.0}, "migrate to gsh": {"XL": 1024.0}}
