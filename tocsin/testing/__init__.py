"""For the tests of applications: a network in one process whose data cluster finds what a test says.

It needs the cores of brokers and coordinator: ``pip install 'tocsin[coordinator]'``.
"""

from tocsin.crowd.receipts import Order, Receipts
from tocsin.testing.sandbox import QUICK, Sandbox

__all__ = ["QUICK", "Order", "Receipts", "Sandbox"]
