"""A whole Tocsin on one machine: data cluster, coordinator and brokers as processes, started, watched and stopped.

``network`` says what runs and where, ``supervisor`` runs it; ``child`` is one process and ``journal`` its log. Nothing
here knows what the processes do: they are told by settings, and asked for their health. ``cluster`` has a host for each
part (``hosts``), and runs on servers of others (``infrastructure``).
"""
