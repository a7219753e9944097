"""Runs of a network over time, simulated or real: their rows, what is derived from them, and how they are drawn."""
