"""Two balancers on the same subscribers, publications and brokers: PADRES's, and the coordinator's."""
