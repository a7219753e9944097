"""Benchmarks of balancing: all planners side by side, on seeded instances."""
