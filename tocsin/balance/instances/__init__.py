"""Instances of the balancing problem: in files, and made from a seed."""
