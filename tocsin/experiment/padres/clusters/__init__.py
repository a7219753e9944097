"""Balancing between clusters: section 6.3 of the PADRES evaluation."""
