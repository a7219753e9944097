"""What of the balancer can be set, and reaches the cores."""

from __future__ import annotations

import re

import msgspec
import pytest

from tocsin.errors import SettingsError
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import HEADS
from tocsin.overlay.tuning import Band, Trigger, Tuning
from tocsin.settings.overlay import NAME, OverlaySettings


def test_what_is_not_set_is_as_in_the_paper() -> None:
    assert OverlaySettings().tuning == Tuning()
    assert OverlaySettings().limits == OverlayLimits()
    tuning = Tuning()
    for band in (tuning.input, tuning.output, tuning.cpu, tuning.memory):
        assert (band.lower, band.higher) == (0.9, 0.95)
    assert (tuning.local.ratio, tuning.local.delay) == (0.1, 0.1)
    assert (tuning.between_clusters.ratio, tuning.between_clusters.delay) == (0.15, 0.15)
    assert (tuning.normal_delay, tuning.balanced) == (0.1, 0.005)
    assert (tuning.stabilize_seconds, tuning.stabilize_difference) == (30.0, 0.05)
    assert (tuning.samples, tuning.sampling_seconds) == (50, 30.0)


def test_every_parameter_that_is_set_reaches_the_balancer() -> None:
    settings = OverlaySettings(
        overload_lower=0.5,
        overload_higher=0.6,
        local_ratio=0.2,
        local_delay=0.3,
        global_ratio=0.4,
        global_delay=0.5,
        normal_delay=0.01,
        balanced=0.02,
        stabilize_seconds=7.0,
        stabilize_difference=0.03,
        report_cards=99,
        samples=5,
        sampling_seconds=3.0,
    )
    band = Band(0.5, 0.6)
    assert settings.tuning == Tuning(
        input=band,
        output=band,
        cpu=band,
        memory=band,
        local=Trigger(0.2, 0.3),
        between_clusters=Trigger(0.4, 0.5),
        normal_delay=0.01,
        balanced=0.02,
        stabilize_seconds=7.0,
        stabilize_difference=0.03,
        report_cards=99,
        samples=5,
        sampling_seconds=3.0,
    )


def test_the_times_of_moves_and_of_sessions_between_clusters_can_be_set() -> None:
    times = {"migration_seconds": 2.0, "leaving_seconds": 3.0, "global_seconds": 60.0}
    assert OverlaySettings(**times).limits == msgspec.structs.replace(OverlayLimits(), **times)  # type: ignore[arg-type]


def test_an_edge_that_would_shed_what_it_still_takes_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"overlay\.overload_higher = 0\.7 is below overlay\.overload_lower = 0\.8"):
        _ = OverlaySettings(overload_lower=0.8, overload_higher=0.7).tuning


def test_no_broker_can_be_called_what_all_heads_are_addressed_by() -> None:
    assert not re.fullmatch(NAME, HEADS)
