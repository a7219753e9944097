"""Processing nodes that share slices on the virtual clock: a log, a dataset, nodes, heads, and faults for them."""
