"""Processing nodes that share slices: how even they become, how long a slice pauses, and how many there are."""
