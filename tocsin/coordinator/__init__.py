"""The coordinator, the paper's broker coordination service: who is on which broker, and who should be.

``core`` is the front door: a state machine without sockets, clock or disk. ``store`` keeps what must outlive it.
"""
