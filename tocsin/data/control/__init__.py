"""The data cluster's side of the brokers' control protocol, without I/O.

:class:`~tocsin.data.control.core.ControlCore` is told what happens on one connection and says what is to be done; the
server drives it with a socket and threads, the simulator with a virtual clock.
"""
