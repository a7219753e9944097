"""The broker's server: sockets and clocks around the core, which decides everything.

``driver`` owns the core. ``connections`` are those of subscribers, each a ``connection`` behind a ``doorway`` that also
leads to the few HTTP calls of ``app``. ``links`` keeps up those to coordinator and data cluster, ``publications``
carries batches to the latter, and ``serve`` puts all together.
"""
