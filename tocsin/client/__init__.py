"""The subscriber's side: what keeps a program subscribed, and gives it each notification once and in order.

:class:`~tocsin.client.core.Core` is the whole of it as a state machine without sockets, clock or threads; what drives
it carries out its actions. ``docs/protocol.md`` is what it speaks.
"""
