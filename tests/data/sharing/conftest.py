from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes say several times a second how busy they are: most tests wait for them to have said so."""
    monkeypatch.setattr("tocsin.data.sharing.node.GAUGE_SECONDS", 0.2)
