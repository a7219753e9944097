"""The broker's server: sockets and clocks around the core, which decides everything.

``driver`` owns the core. ``sessions`` are the subscribers' connections, each a ``connection`` behind a ``doorway`` that
also leads to the few HTTP calls of ``app``. ``link`` keeps up the connections to coordinator and data cluster,
``publications`` carries batches to the latter, and ``serve`` puts all together.
"""
