"""What went wrong in an execution, in a sentence."""

from __future__ import annotations

import errno

import pytest

from tocsin.data.channels import trouble
from tocsin.data.disk import FULL_SENTENCE
from tocsin.errors import StorageError, UnavailableError


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("write failed: No space left on device")],
)
def test_a_disk_without_room_is_called_full_whoever_found_out(error: Exception) -> None:
    assert trouble.is_of_disk(error)
    assert trouble.is_foreseen(error)
    assert trouble.sentence(error) == FULL_SENTENCE


def test_a_refusal_of_ours_speaks_for_itself() -> None:
    assert trouble.is_of_disk(StorageError("the table is locked"))
    assert trouble.sentence(StorageError("the table is locked")) == "the table is locked"
    assert not trouble.is_of_disk(UnavailableError("no connection"))


def test_an_error_without_a_word_is_called_by_its_kind() -> None:
    assert trouble.sentence(KeyError()) == "KeyError"
    assert not trouble.is_foreseen(KeyError())
