"""The benchmark of brokers: everybody gets everything, and its figures say so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.program import Program
from tocsin.bench.broker import websocket
from tocsin.bench.broker.contestant import Cores, FanoutContestant, Other, Tocsin
from tocsin.bench.broker.fanout import PEERS, fanout
from tocsin.bench.broker.members import members
from tocsin.bench.broker.migration import migration
from tocsin.bench.broker.payloads import BYTES, payload
from tocsin.bench.broker.peers.peer import PeerServer
from tocsin.bench.broker.processes import apart
from tocsin.bench.broker.publishing import publishing
from tocsin.bench.broker.sockets import exactly
from tocsin.errors import InvalidError, UnavailableError


@pytest.fixture
def tocsin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(monkeypatch, capsys)


@pytest.mark.process
@pytest.mark.parametrize("peer", [None, *PEERS], ids=lambda peer: peer.name if peer else "Tocsin")
def test_a_contestant_delivers_to_all_exactly_what_was_published(
    peer: PeerServer | None, tmp_path: Path, cores: Cores
) -> None:
    contestant: FanoutContestant = Other(20, _installed(peer)) if peer else Tocsin(20)
    try:
        contestant.open(tmp_path, cores)
        for count in (10, 1):
            contestant.check(count)
            contestant.round(count)
            assert contestant.reading(count, 0.2) > 0
    finally:
        contestant.close()


@pytest.mark.process
def test_the_fan_out_is_set_beside_the_peers(tmp_path: Path, cores: Cores) -> None:
    redis = _installed(PEERS[0])
    figures = list(fanout(tmp_path, cores, [20], 2, [redis], lambda _: None))
    groups = ["10 each to 20 subscribers", "1 each to 20 subscribers"]
    assert list(dict.fromkeys(figure.group for figure in figures)) == groups
    for group in groups:
        ours = [figure for figure in figures if figure.group == group and figure.name == "Tocsin"]
        assert [(figure.baseline, figure.met is None) for figure in ours] == [("Redis", False)]


@pytest.mark.process
def test_members_are_counted(tmp_path: Path, cores: Cores) -> None:
    names = [figure.name for figure in members(tmp_path, cores, 30, lambda _: None)]
    assert names == ["memory of each", "logins and subscriptions", "subscribers that came"]


@pytest.mark.process
def test_who_is_moved_gets_everything_once(tmp_path: Path, cores: Cores) -> None:
    figures = {figure.name: figure for figure in migration(tmp_path, cores, 20, 2, lambda _: None)}
    assert figures["subscribers with more or less than published"].value == 0


@pytest.mark.process
def test_publishing_is_measured_beside_the_library_below(cores: Cores) -> None:
    figures = {figure.name: figure for figure in publishing(cores, 20, 1.0, lambda _: None)}
    assert figures["processor time of a publication"].baseline == "websockets alone"
    assert figures["processor time of a publication"].value > 0
    assert figures["all of them"].target == "at most 0.2 cores"
    assert figures["publications sent later than they were due, p99"].unit == "ms"


@pytest.mark.parametrize("number", [0, 7, 999_999])
def test_payloads_have_one_size(number: int) -> None:
    assert {len(payload(number, execution)) for execution in (0, 1_000_001)} == {BYTES}


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_frames_are_read_as_they_were_written_however_they_come(size: int) -> None:
    frame, buffer = websocket.encode_frame(b"x" * size), bytearray()
    got = []
    for start in range(0, len(frame), 4096):
        buffer += frame[start : start + 4096]
        got += list(websocket.payloads(buffer))
    assert got == [b"x" * size]
    assert not buffer


def test_whoever_got_less_spoils_the_round() -> None:
    exactly([3, 3], 3)
    with pytest.raises(UnavailableError, match="1 connections got other than 3 bytes, one of them 2"):
        exactly([3, 2], 3)


def test_an_unknown_part_is_refused(tocsin: Program) -> None:
    run = tocsin("bench", "broker", "--part", "speed")
    assert run.status != 0
    assert "there is no part speed" in run.err


def test_more_connections_than_files_are_refused_before_anything_starts(tocsin: Program) -> None:
    run = tocsin("bench", "broker", "--part", "fanout", "--no-peers", "--sizes", "100000000")
    assert run.status != 0
    assert "measure fewer with --sizes" in " ".join(run.err.split())


def test_a_peer_that_is_not_there_is_missed_at_once(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("tocsin.bench.broker.processes._SBIN", "/nowhere")
    run = tocsin("bench", "broker", "--part", "fanout", "--sizes", "10")
    assert run.status != 0
    assert "redis-server is not installed" in " ".join(run.err.split())


@pytest.fixture
def cores() -> Cores:
    try:
        with apart() as found:
            return found
    except InvalidError:
        pytest.skip("one core")


def _installed(peer: PeerServer) -> PeerServer:
    if shutil.which(peer.program, path="/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin") is None:
        pytest.skip(f"{peer.program} is not installed")
    return peer
