"""What the paper claims of its test bed, by the numbers of our runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tocsin.experiment.series.course import Course, Key
from tocsin.experiment.testbed.rows import Summary
from tocsin.experiment.verdict import Verdict, counted, judged, unmeasured

Courses = Mapping[Key, Course]

_PLACEMENTS = ("RND", "RR", "NR")
_SIMILAR = 0.15
_EARLY = 600.0


def verdicts(courses: Courses, summaries: Sequence[Summary]) -> list[Verdict]:
    """All of them."""
    return [
        *(falls(courses, scheme) for scheme in ("LDM", "SDM")),
        *(nearest_costs(courses, scheme) for scheme in ("LDM", "SDM")),
        nearest_worst(courses),
        similar(courses),
        shuffle_saves(courses),
        ours(courses),
        nothing_lost(summaries),
    ]


def falls(courses: Courses, scheme: str) -> Verdict:
    """The highest load and cov fall for every placement."""
    claim = f"{scheme} lowers the highest load and cov for every placement (figures 5 to 8 and 10)"
    pairs = _pairs(courses, scheme, "no balancing")
    said = [
        f"{place}: highest × {one.highest / other.highest:.2f}, cov {other.cov:.2f} → {one.cov:.2f}"
        for place, one, other in pairs
    ]
    held = [one.highest < other.highest and one.cov < other.cov for _, one, other in pairs]
    return counted(claim, "; ".join(said), held, "where the placement is even already, there is little left to lower")


def nearest_costs(courses: Courses, scheme: str) -> Verdict:
    """NR needs far more migrations than RND and RR."""
    claim = f"NR needs far more migrations than RND and RR under {scheme} (figure 12)"
    found = {place: courses[Key(place, scheme)].moved for place in _PLACEMENTS if Key(place, scheme) in courses}
    if "NR" not in found or len(found) < 2:
        return unmeasured(claim)
    others = [moved for place, moved in found.items() if place != "NR"]
    said = ", ".join(f"{place} {moved:,}" for place, moved in found.items())
    return counted(claim, f"moves: {said} (far: twice)", [found["NR"] >= 2 * moved for moved in others])


def nearest_worst(courses: Courses) -> Verdict:
    """NR alone is extremely imbalanced."""
    claim = "NR is extremely imbalanced without balancing, above γ = 0.5, and RND and RR are not (6.1.3)"
    key = Key("NR", "no balancing")
    if key not in courses:
        return unmeasured(claim)
    covs = {place: courses[Key(place, key.scheme)].cov for place in _PLACEMENTS if Key(place, key.scheme) in courses}
    said = ", ".join(f"{place} {cov:.2f}" for place, cov in covs.items())
    return counted(claim, f"cov: {said}", [(cov > 0.5) == (place == "NR") for place, cov in covs.items()])


def similar(courses: Courses) -> Verdict:
    """LDM and SDM perform alike."""
    claim = "LDM and SDM come out similar (figures 6 and 10)"
    pairs = _pairs(courses, "LDM", "SDM")
    ratios = [one.highest / other.highest for _, one, other in pairs]
    said = [
        f"{place}: LDM's highest load is {ratio:.2f} times SDM's"
        for (place, _, _), ratio in zip(pairs, ratios, strict=True)
    ]
    return counted(claim, "; ".join(said) + " (similar: within 15 %)", [abs(ratio - 1) <= _SIMILAR for ratio in ratios])


def shuffle_saves(courses: Courses) -> Verdict:
    """An early shuffle saves later migrations."""
    claim = "An early GSH saves later migrations in NR (figures 8, 9 and 11)"
    pairs = [
        (scheme, courses[Key("NR", f"{scheme}+GSH")], courses[Key("NR", scheme)])
        for scheme in ("LDM", "SDM")
        if {Key("NR", f"{scheme}+GSH"), Key("NR", scheme)} <= courses.keys()
    ]
    late: Callable[[Course], int] = lambda course: course.moved_after(_EARLY)  # noqa: E731
    said = [f"moves after minute 10: {name} {late(other):,}, {name}+GSH {late(one):,}" for name, one, other in pairs]
    held = [late(one) < late(other) for _, one, other in pairs]
    return counted(claim, "; ".join(said), held, "the loads change by themselves, and both follow them")


def ours(courses: Courses) -> Verdict:
    """Ours, not the paper's: as balanced as the best of the paper's schemes, with fewer moves."""
    claim = "Ours: highest load within 5 % of LDM+GSH or below, with fewer moves"
    pairs = _pairs(courses, "ours", "LDM+GSH")
    said = [
        f"{place}: highest × {one.highest / other.highest:.2f}, moves {one.moved:,} to {other.moved:,}"
        for place, one, other in pairs
    ]
    held = [one.highest <= other.highest * 1.05 and one.moved <= other.moved for _, one, other in pairs]
    return counted(claim, "; ".join(said), held)


def nothing_lost(summaries: Sequence[Summary]) -> Verdict:
    """Ours as well: whatever was found came, once and in order."""
    claim = "Nobody misses a notification, or gets one twice or out of order, while being moved"
    if not summaries:
        return unmeasured(claim)
    notes, lost, repeated = (sum(getattr(one, name) for one in summaries) for name in ("notes", "lost", "repeated"))
    said = f"{notes:,} notifications in {len(summaries)} runs: {lost:,} lost, {repeated:,} twice or out of order"
    return judged(claim, said, not lost and not repeated)._replace(sizeless=True)


def _pairs(courses: Courses, one: str, other: str) -> list[tuple[str, Course, Course]]:
    return [
        (place, courses[Key(place, one)], courses[Key(place, other)])
        for place in _PLACEMENTS
        if Key(place, one) in courses and Key(place, other) in courses
    ]
