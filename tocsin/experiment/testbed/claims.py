"""What the paper claims of its test bed, by the numbers of our runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tocsin.experiment.series.course import Course, RunKey
from tocsin.experiment.testbed.rows import RunSummary
from tocsin.experiment.verdict import ClaimVerdict, judge, judge_cases, not_measured

Courses = Mapping[RunKey, Course]

_PLACEMENTS = ("RND", "RR", "NR")
_SIMILAR = 0.15
# What two runs of the same differ by, in moves.
_ALIKE = 10
_FEW = 40
_EARLY = 600.0


def verdicts(courses: Courses, summaries: Sequence[RunSummary]) -> list[ClaimVerdict]:
    """All of them. What compares placements goes by the first seed, what compares schemes by all."""
    least = min((key.seed for key in courses), default=1)
    first = {RunKey(key.placement, key.scheme): course for key, course in courses.items() if key.seed == least}
    return [
        *(falls(courses, scheme) for scheme in ("LDM", "SDM")),
        *(nearest_costs(first, scheme) for scheme in ("LDM", "SDM")),
        nearest_worst(first),
        least_loaded(first),
        random_is_cheap(first, summaries),
        similar(courses),
        similar_moves(courses),
        shuffle_saves(courses),
        shuffle_gains_little(courses),
        ours(courses),
        ours_as_even(courses),
        nothing_lost(summaries),
    ]


def falls(courses: Courses, scheme: str) -> ClaimVerdict:
    """The highest load and cov fall for every placement."""
    claim = f"{scheme} lowers the highest load and cov for every placement (figures 5 to 8 and 10)"
    pairs = _pairs(courses, scheme, "no balancing")
    said = [
        f"{place}: highest × {one.highest / other.highest:.2f}, cov {other.cov:.2f} → {one.cov:.2f}"
        for place, one, other in pairs
    ]
    held = [one.highest < other.highest and one.cov < other.cov for _, one, other in pairs]
    return judge_cases(
        claim, "; ".join(said), held, "where the placement is even already, there is little left to lower"
    )


def nearest_costs(courses: Courses, scheme: str) -> ClaimVerdict:
    """NR needs far more migrations than RND and RR."""
    claim = f"NR needs far more migrations than RND and RR under {scheme} (figure 12)"
    found = {
        place: courses[RunKey(place, scheme)].total_moves for place in _PLACEMENTS if RunKey(place, scheme) in courses
    }
    if "NR" not in found or len(found) < 2:
        return not_measured(claim)
    others = [moved for place, moved in found.items() if place != "NR"]
    said = ", ".join(f"{place} {moved:,}" for place, moved in found.items())
    return judge_cases(claim, f"moves: {said} (far: twice)", [found["NR"] >= 2 * moved for moved in others])


def nearest_worst(courses: Courses) -> ClaimVerdict:
    """NR alone is extremely imbalanced."""
    claim = "NR is extremely imbalanced without balancing, above γ = 0.5, and RND and RR are not (6.1.3)"
    key = RunKey("NR", "no balancing")
    if key not in courses:
        return not_measured(claim)
    covs = {
        place: courses[RunKey(place, key.scheme)].cov for place in _PLACEMENTS if RunKey(place, key.scheme) in courses
    }
    said = ", ".join(f"{place} {cov:.2f}" for place, cov in covs.items())
    return judge_cases(claim, f"cov: {said}", [(cov > 0.5) == (place == "NR") for place, cov in covs.items()])


def least_loaded(courses: Courses) -> ClaimVerdict:
    """LL heaps newcomers on one broker."""
    claim = (
        "LL does not perform well: newcomers without subscriptions all get the broker that is least loaded just then, "
        "and overwhelm it when they subscribe (5.1)"
    )
    places = [place for place in ("LL", "RND", "RR") if RunKey(place, "no balancing") in courses]
    if "LL" not in places or len(places) < 2:
        return not_measured(claim)
    runs = {place: courses[RunKey(place, "no balancing")] for place in places}
    said = ", ".join(f"{place} {run.over:.2f}, cov {run.cov:.2f}" for place, run in runs.items())
    held = [runs["LL"].cov > run.cov for place, run in runs.items() if place != "LL"]
    return judge_cases(claim, f"highest ÷ mean: {said}", held)


def random_is_cheap(courses: Courses, summaries: Sequence[RunSummary]) -> ClaimVerdict:
    """Under RND few are moved, and there is no shuffle."""
    claim = "RND is little skewed: only few migrations happen, and the shuffle is not invoked (6.1.3, figure 6)"
    moved = {
        name: courses[RunKey("RND", name)].total_moves for name in ("LDM", "SDM") if RunKey("RND", name) in courses
    }
    both = [one for one in summaries if one.placement == "RND" and one.scheme in ("LDM+GSH", "SDM+GSH")]
    said = ", ".join(f"{count:,} moves with {name}" for name, count in moved.items())
    if both:
        said += f"; {sum(one.shuffles for one in both)} shuffles in the {len(both)} runs that could"
    held = [count <= _FEW for count in moved.values()] + [not one.shuffles for one in both]
    return judge_cases(claim, f"{said} (few: up to {_FEW})", held)


def similar(courses: Courses) -> ClaimVerdict:
    """LDM and SDM perform alike."""
    claim = "LDM and SDM come out similar (figures 6 and 10)"
    pairs = _pairs(courses, "LDM", "SDM")
    ratios = [one.highest / other.highest for _, one, other in pairs]
    said = [
        f"{place}: LDM's highest load is {ratio:.2f} times SDM's"
        for (place, _, _), ratio in zip(pairs, ratios, strict=True)
    ]
    return judge_cases(
        claim, "; ".join(said) + " (similar: within 15 %)", [abs(ratio - 1) <= _SIMILAR for ratio in ratios]
    )


def similar_moves(courses: Courses) -> ClaimVerdict:
    """LDM and SDM move about as many."""
    claim = "LDM and SDM need similarly many migrations (6.1.3, figures 6, 10 and 12)"
    pairs = _pairs(courses, "LDM", "SDM")
    said = "; ".join(f"{place}: {one.total_moves:,} and {other.total_moves:,}" for place, one, other in pairs)
    held = [
        abs(one.total_moves - other.total_moves) <= max(_ALIKE, _SIMILAR * other.total_moves) for _, one, other in pairs
    ]
    return judge_cases(claim, f"{said} (similar: within 15 % or {_ALIKE})", held)


def shuffle_gains_little(courses: Courses) -> ClaimVerdict:
    """With shuffles the loads end about as they do with migrations alone."""
    claim = "In the prototype GSH shows little benefit over migration alone (6.1.3)"
    pairs = _shuffle_pairs(courses)
    said = "; ".join(
        f"{case}: highest load with {name}+GSH × {one.highest / other.highest:.2f} of {name}'s"
        for name, case, one, other in pairs
    )
    held = [abs(one.highest / other.highest - 1) <= _SIMILAR for _, _, one, other in pairs]
    return judge_cases(claim, f"{said} (little: within 15 %)", held)


def shuffle_saves(courses: Courses) -> ClaimVerdict:
    """An early shuffle saves later migrations."""
    claim = "An early GSH saves later migrations in NR (figures 8, 9 and 11)"
    pairs = _shuffle_pairs(courses)
    late: Callable[[Course], int] = lambda course: course.moved_after(_EARLY)  # noqa: E731
    said = [f"{case}: {name} {late(other):,}, {name}+GSH {late(one):,}" for name, case, one, other in pairs]
    held = [late(one) < late(other) for _, _, one, other in pairs]
    return judge_cases(
        claim, f"moves after minute 10: {'; '.join(said)}", held, "the loads change by themselves, and both follow them"
    )


def ours(courses: Courses) -> ClaimVerdict:
    """Ours, not the paper's: the highest load is at most that of the best of the paper's schemes."""
    claim = "Ours: highest load not above that of LDM+GSH, for every placement"
    pairs = _pairs(courses, "ours", "LDM+GSH")
    said = [
        f"{place}: highest × {one.highest / other.highest:.2f}, moves {one.total_moves:,} to {other.total_moves:,}"
        for place, one, other in pairs
    ]
    return judge_cases(claim, "; ".join(said), [one.highest <= other.highest for _, one, other in pairs])


def ours_as_even(courses: Courses) -> ClaimVerdict:
    """Ours as well: where LDM is to end as even, it moves no fewer."""
    claim = "Ours: at least as even as LDM with α = 0.05, with no more moves (NR)"
    pairs = _pairs(courses, "ours", "LDM α=0.05")
    said = [
        f"{place}: highest ÷ mean {one.over:.2f} to {other.over:.2f}, "
        f"moves {one.total_moves:,} to {other.total_moves:,}"
        for place, one, other in pairs
    ]
    held = [each for _, one, other in pairs for each in (one.over <= other.over, one.total_moves <= other.total_moves)]
    return judge_cases(claim, "; ".join(said), held)


def nothing_lost(summaries: Sequence[RunSummary]) -> ClaimVerdict:
    """Ours as well: whatever was found came, once and in order."""
    claim = "Nobody misses a notification, or gets one twice or out of order, while being moved"
    if not summaries:
        return not_measured(claim)
    notes, lost, repeated = (sum(getattr(one, name) for one in summaries) for name in ("notes", "lost", "repeated"))
    said = f"{notes:,} notifications in {len(summaries)} runs: {lost:,} lost, {repeated:,} twice or out of order"
    return judge(claim, said, not lost and not repeated)._replace(sizeless=True)


def _pairs(courses: Courses, one: str, other: str) -> list[tuple[str, Course, Course]]:
    """Two schemes with the same placement and seed, by what these are called."""
    keys = [RunKey(place, one, key.seed) for place in _PLACEMENTS for key in courses if key[:2] == (place, one)]
    paired = [(key, key._replace(scheme=other)) for key in keys if key._replace(scheme=other) in courses]
    return [(_case(key), courses[key], courses[counterpart]) for key, counterpart in paired]


def _shuffle_pairs(courses: Courses) -> list[tuple[str, str, Course, Course]]:
    """What migrates in NR, with shuffles and without, by how it migrates and by what the case is called."""
    near = {key: course for key, course in courses.items() if key.placement == "NR"}
    return [(scheme, *pair) for scheme in ("LDM", "SDM") for pair in _pairs(near, f"{scheme}+GSH", scheme)]


def _case(key: RunKey) -> str:
    return key.placement if key.seed == 1 else f"{key.placement}, seed {key.seed}"
