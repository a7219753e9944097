"""Processing nodes that share a feed's slices: who owns which, whose work counts, and how slices move while data flows.

Pure: cores of the head and of a processing node, and the policies they ask. Decision 018 and docs/slices.md have the
rules.
"""
