"""More edges in a cluster, and more clusters in a chain: figures 6g and 8d of the PADRES evaluation."""
