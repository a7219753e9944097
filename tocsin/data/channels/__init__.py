"""Channels: parameterised queries, checked when they are created and run once for all their subscriptions."""
