"""The overlay's server: sockets, disk and clock around a head or an edge, whose core decides everything.

``driver`` owns the core. ``links`` are those to other brokers, ``clients`` the connections of publishers and
subscribers, each with an ``outgoing`` queue. ``store`` keeps a head's log and ``writer`` fills it, ``gauge`` measures
an edge, ``server`` puts all together, and ``serve`` listens.
"""
