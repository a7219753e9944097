"""A processing node in a process of its own, ``tocsin worker``: a Spark session, connected to the data cluster."""
