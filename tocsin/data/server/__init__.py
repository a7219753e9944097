"""The data cluster's server: REST calls for people and publishers, a control socket for brokers.

It decides nothing about data: every call is checked, handed to a :class:`~tocsin.data.server.cluster.DataCluster` and
its answer encoded. ``operations`` is the table of all calls, from which both the routes and their documentation are
made; ``control`` is the socket; ``serve`` listens.
"""
