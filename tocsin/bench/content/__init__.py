"""Benchmarks of content-based matching: our engine beside the naive scan, the poset, a-tree and PADRES."""
