from __future__ import annotations

import pytest

from tocsin.crowd.messages import Compared, CrowdFigures, MissedNotes
from tocsin.demo.play import insist
from tocsin.demo.verdict import WrongError


@pytest.mark.parametrize(
    ("compared", "figures"),
    [
        (Compared(9, 1, [MissedNotes("p1", 7, [3])]), CrowdFigures()),
        (Compared(9), CrowdFigures(duplicates=1)),
        (Compared(9), CrowdFigures(disordered=1)),
    ],
    ids=["lost", "twice", "out of order"],
)
def test_a_demo_in_which_something_went_wrong_does_not_end_well(compared: Compared, figures: CrowdFigures) -> None:
    with pytest.raises(WrongError, match="not everybody got what was for them"):
        insist(compared, figures)


def test_a_demo_in_which_nothing_went_wrong_ends_well() -> None:
    insist(Compared(9), CrowdFigures(moved=300))
