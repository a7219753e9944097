"""The planners: each answers a problem with a plan, each behind the same interface."""
