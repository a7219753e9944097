"""Benchmarks that anyone can run: each prints its figures beside their targets and a baseline of the same run."""
