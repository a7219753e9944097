"""Hosts are network namespaces: what they send each other, what a cut keeps from arriving, and what is left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from tocsin.errors import UnavailableError
from tocsin.local.hosts import Hosts, hosts, remove_leftovers, why_not

pytestmark = pytest.mark.process

_PATIENCE = 60.0
# A packet between two hosts takes microseconds; what has not come by then was lost.
_LOST = 0.5
_LEAVES_HOSTS = """
import subprocess, sys
from tocsin.local.hosts import hosts
with hosts("left") as made:
    subprocess.Popen([*made.on("left"), "sleep", "1000"])
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def made() -> Iterator[Hosts]:
    """Three hosts."""
    if reason := why_not():
        pytest.skip(reason)
    with hosts("ann", "bob", "cora") as three:
        yield three


@contextmanager
def connected(hosts: Hosts, one: str, other: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection between two hosts."""
    with ExitStack() as stack:
        with hosts.inside(other):
            listener = stack.enter_context(socket.create_server((hosts.address(other), 0)))
        with hosts.inside(one):
            near = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=_PATIENCE))
        far, _ = listener.accept()
        far.settimeout(_PATIENCE)
        yield near, stack.enter_context(far)


def arrives(sender: socket.socket, receiver: socket.socket, word: bytes) -> bool:
    """Whether a word arrives at once."""
    sender.sendall(word)
    receiver.settimeout(_LOST)
    try:
        return receiver.recv(100) == word
    except TimeoutError:
        return False
    finally:
        receiver.settimeout(_PATIENCE)


def test_what_is_sent_while_a_way_is_cut_arrives_when_it_is_mended(made: Hosts) -> None:
    with connected(made, "ann", "bob") as (ann, bob):
        made.cut("bob", "ann")
        assert not arrives(ann, bob, b"from ann")
        assert not arrives(bob, ann, b"from bob")
        made.mend("ann", "bob")
        assert bob.recv(100) == b"from ann"
        assert ann.recv(100) == b"from bob"
        made.mend("ann", "bob")


def test_a_cut_between_two_hosts_is_none_between_others(made: Hosts) -> None:
    with connected(made, "ann", "cora") as (ann, cora), connected(made, "cora", "bob") as (other, bob):
        made.cut("ann", "bob")
        ann.sendall(b"1")
        other.sendall(b"2")
        assert (cora.recv(1), bob.recv(1)) == (b"1", b"2")


def test_who_is_silenced_still_hears(made: Hosts) -> None:
    with connected(made, "ann", "bob") as (ann, bob):
        made.silence("bob", "ann")
        ann.sendall(b"from ann")
        assert bob.recv(100) == b"from ann"
        assert not arrives(bob, ann, b"from bob")
        made.mend("ann", "bob")
        assert ann.recv(100) == b"from bob"


def test_this_machine_itself_cannot_reach_a_host(made: Hosts) -> None:
    with made.inside("ann"), socket.create_server((made.address("ann"), 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address, timeout=_PATIENCE):
            pass
    with pytest.raises(OSError):  # noqa: PT011  (which one depends on the machine's own routes)
        socket.create_connection(address, timeout=_LOST)


def test_what_runs_on_a_host_ends_with_it(made: Hosts) -> None:
    command = [*made.on("cora"), "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"\n"
        made.remove()
        assert running.wait(_PATIENCE) == -signal.SIGKILL
    assert not namespaces()
    made.remove()


def test_hosts_are_removed_when_something_goes_wrong_on_them(made: Hosts) -> None:
    made.remove()

    def fail() -> None:
        with hosts("dora"):
            assert namespaces()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not namespaces()


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_has_is_not(made: Hosts) -> None:
    command = [sys.executable, "-c", _LEAVES_HOSTS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"made\n"
        prefix, [sleeping] = f"tocsin-{other.pid}-", psutil.Process(other.pid).children()
        made.remove()
        remove_leftovers()
        assert namespaces(prefix)
        assert sleeping.is_running()
        other.kill()
    remove_leftovers()
    assert not namespaces(prefix)
    psutil.wait_procs([sleeping], timeout=_PATIENCE)
    assert not sleeping.is_running()


def test_who_may_not_make_hosts_is_told_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="apt-get install iproute2"), hosts("ann"):
        pass
    refusing = tmp_path / "ip"
    refusing.write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 1\n", encoding="utf-8")
    refusing.chmod(0o755)
    with pytest.raises(UnavailableError, match=r"Operation not permitted\); run it as root"), hosts("ann"):
        pass


def namespaces(prefix: str = f"tocsin-{psutil.Process().pid}-") -> list[Path]:
    """The hosts whose names begin so."""
    return list(Path("/run/netns").glob(f"{prefix}*"))
