"""For the tests of applications: networks in one process whose data cluster finds what a test says.

A :class:`Sandbox` is on the running event loop and on real sockets, a :class:`VirtualNetwork` on virtual time. They
need the cores of brokers and coordinator: ``pip install 'tocsin[coordinator]'``.
"""

from tocsin.crowd.receipts import Order, Receipts
from tocsin.simulate.network import Conditions
from tocsin.testing.checker import Checker
from tocsin.testing.sandbox import QUICK, Sandbox
from tocsin.testing.virtual import VirtualNetwork

__all__ = ["QUICK", "Checker", "Conditions", "Order", "Receipts", "Sandbox", "VirtualNetwork"]
