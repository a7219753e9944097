"""The simulator: the cores of brokers, coordinator and subscribers on a virtual clock, the data cluster as a model.

Everything that happens follows from a seed, on one thread, so that a run can be repeated exactly. ``docs/simulator.md``
says what is modelled, and how.
"""
