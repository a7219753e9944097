"""The data plane of processing nodes: slices of a feed's log into files that are offered, and offers into commits."""
