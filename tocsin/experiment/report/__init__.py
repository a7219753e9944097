"""The report of a run: one HTML page with everything in it, and the figures as files beside it."""
