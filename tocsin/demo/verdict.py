"""Whether everybody got what was for them."""

from __future__ import annotations

from tocsin.crowd.messages import Compared, CrowdFigures
from tocsin.errors import TocsinError


class WrongError(TocsinError):
    """What was delivered is not what was found."""

    code = "wrong"


def insist(compared: Compared, figures: CrowdFigures) -> None:
    """Raises WrongError unless everybody got everything, once and in order."""
    if compared.lost or figures.duplicates or figures.disordered:
        raise WrongError(
            "not everybody got what was for them, once and in order: this is a fault in Tocsin; please report it "
            "with the logs"
        )
