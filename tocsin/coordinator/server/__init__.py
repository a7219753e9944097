"""The coordinator's server: HTTP calls for subscribers and operators, a WebSocket for each broker.

It decides nothing about subscribers: ``driver`` carries events to the core and does what the core wants done, ``calls``
are the HTTP side, ``links`` that of the brokers; ``serve`` listens.
"""
