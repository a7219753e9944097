"""Balancing within a cluster: section 6.2 of the PADRES evaluation."""
