"""A subscriber as a state machine, without sockets, clock or threads: events in, actions out.

:class:`~tocsin.client.core.core.SubscriberCore` is its front door. The ``connector`` finds the broker and follows when
it is moved, ``subscriptions`` and ``publications`` are what the application has asked for, the ``inbox`` is what has
come for it. The library in :mod:`tocsin.client`, the simulator and the tests drive the same core.
"""
