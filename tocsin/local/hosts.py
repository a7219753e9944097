"""Hosts on one machine: network namespaces with an address each, and ways between them that can be cut. Linux, as root.

All hosts are on a switch, which is a namespace, too: nothing of it is seen by, or reaches, the machine's own network.
So several networks of hosts can have the same addresses at the same time.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from tocsin.errors import UnavailableError

NETWORK: Final = IPv4Network("10.77.0.0/24")
MOST_HOSTS: Final = NETWORK.num_addresses - 2
_NAMESPACES: Final = Path("/run/netns")
_PREFIX: Final = "tocsin"
_SWITCH: Final = "switch"
_NAME: Final = re.compile(rf"{_PREFIX}-(?P<pid>\d+)-.+")
_CLONE_NEWNET: Final = 0x40000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# An address of the link layer that nobody has: what is sent there arrives nowhere, and nobody says so.
_NOBODY: Final = "02:00:00:00:00:01"


class Hosts:
    """Hosts by their names. Made by :func:`hosts`, which removes them in the end.

    A way between two hosts that is cut loses what is sent, as a broken cable does: connections stay open until somebody
    has waited for too long, and go on where they were if it is mended before.
    """

    def __init__(self, names: Sequence[str]) -> None:
        assert len(set(names) - {_SWITCH}) == len(names) <= MOST_HOSTS
        self.names = tuple(names)
        self._addresses = dict(zip(names, map(str, NETWORK.hosts()), strict=False))

    def address(self, name: str) -> str:
        """The address of a host."""
        return self._addresses[name]

    def on(self, name: str) -> tuple[str, ...]:
        """A command that becomes the one it is given, on this host."""
        return ("ip", "netns", "exec", _namespace(name))

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """While entered, this thread is on the host, with what it starts; sockets that it has stay where they are."""
        with Path("/proc/thread-self/ns/net").open() as before, (_NAMESPACES / _namespace(name)).open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def cut(self, one: str, other: str) -> None:
        """Nothing that one of two hosts sends reaches the other."""
        self.silence(one, other)
        self.silence(other, one)

    def silence(self, sender: str, receiver: str) -> None:
        """Nothing that one host sends reaches the other, which is heard all the same."""
        _ip(sender, "neigh", "replace", self.address(receiver), "lladdr", _NOBODY, "nud", "permanent", "dev", "eth0")

    def mend(self, one: str, other: str) -> None:
        """The way between two hosts is whole again, if it was not."""
        for here, there in ((one, other), (other, one)):
            # What is forgotten is looked up at the next packet; there may be nothing to forget.
            with suppress(UnavailableError):
                _ip(here, "neigh", "del", self.address(there), "dev", "eth0")

    def make(self) -> None:
        """Makes them, each with a cable to the switch."""
        _run("ip", "netns", "add", _namespace(_SWITCH))
        _ip(_SWITCH, "link", "add", _SWITCH, "type", "bridge")
        _ip(_SWITCH, "link", "set", _SWITCH, "up")
        for number, name in enumerate(self.names):
            port, length = f"port-{number}", NETWORK.prefixlen
            _run("ip", "netns", "add", _namespace(name))
            _ip(_SWITCH, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", _namespace(name))
            _ip(_SWITCH, "link", "set", port, "master", _SWITCH, "up")
            _ip(name, "address", "add", f"{self.address(name)}/{length}", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip(name, "link", "set", device, "up")

    def remove(self) -> None:
        """Ends whatever still runs on them, and removes them."""
        for name in (*self.names, _SWITCH):
            _remove(_namespace(name))


@contextmanager
def hosts(*names: str) -> Iterator[Hosts]:
    """Hosts that are gone in the end; one set at a time in a process. UnavailableError where they cannot be made.

    Those that a process left behind that was killed are removed first, with what still runs on them.
    """
    if reason := why_not():
        raise UnavailableError(reason)
    remove_leftovers()
    made = Hosts(names)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def why_not() -> str:
    """Why hosts cannot be made on this machine, in a sentence; empty if they can."""
    if shutil.which("ip") is None:
        return "hosts are network namespaces, made with ip: install it (on Debian: apt-get install iproute2)"
    trial = _namespace("trial")
    try:
        _run("ip", "netns", "add", trial)
        # A namespace can be made in places where nothing can be done in it.
        _ip("trial", "link", "add", _SWITCH, "type", "bridge")
        _ip("trial", "link", "add", "port", "type", "veth")
    except UnavailableError as error:
        return f"hosts are network namespaces, which this user may not make here ({error}); run it as root"
    finally:
        _remove(trial)
    return ""


def remove_leftovers() -> None:
    """Removes the hosts of processes that are gone, or that bore this one's number before it did."""
    for path in _NAMESPACES.glob(f"{_PREFIX}-*"):
        match = _NAME.fullmatch(path.name)
        if match and (int(match["pid"]) == os.getpid() or not Path(f"/proc/{match['pid']}").exists()):
            _remove(path.name)


def _namespace(name: str) -> str:
    return f"{_PREFIX}-{os.getpid()}-{name}"


def _remove(namespace: str) -> None:
    if not (_NAMESPACES / namespace).exists():
        return
    with suppress(UnavailableError):
        for pid in map(int, _run("ip", "netns", "pids", namespace).split()):
            if pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    with suppress(UnavailableError):
        _run("ip", "netns", "delete", namespace)


def _ip(host: str, *arguments: str) -> str:
    return _run("ip", "-n", _namespace(host), *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout


def _enter(namespace: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
