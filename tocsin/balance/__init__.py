"""Balancing subscribers over brokers: the load model, policies, planners and bounds.

Pure functions over arrays: no sockets, no clock, no Spark. The coordinator and the simulator use it, and so can a
researcher alone.
"""
