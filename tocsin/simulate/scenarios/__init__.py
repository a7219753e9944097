"""Generators of scenarios: the same arguments and the same seed make the same scenario."""
