"""The demo: the emergency application on a whole local network, for a person to watch.

The people are a :mod:`tocsin.crowd`. ``play`` is the order of events, ``screen`` shows them, and ``summary`` tells in
the end what balancing did, and whether everybody got what the data cluster had found for them.
"""
