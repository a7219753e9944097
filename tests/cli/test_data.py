"""``tocsin data`` as an operator starts it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Program

ANYWHERE = "--set=data.port=0"


def test_a_certificate_that_cannot_be_read_is_found_out_before_anything_starts(tocsin: Program) -> None:
    refused = tocsin(ANYWHERE, "--set=data.tls_certificate=none.pem", "data")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err == "error: data.tls_certificate = none.pem cannot be read: No such file or directory\n"
    assert not Path("tocsin-data").exists()
