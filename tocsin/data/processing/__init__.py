"""A user's function between a feed's log and its dataset: what it is given, and what becomes of what it fails on.

From the outside in: ``stage`` is what Spark's workers do with the rows of a micro-batch, ``bisection`` finds the
records that the function cannot take, ``process`` keeps it in a process of its own, ``host`` is that process, ``wire``
what the two say, and ``contract`` what a function may give.
"""
