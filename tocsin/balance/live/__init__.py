"""The workload as it changes: what the coordinator writes into, and what placements and planners are shown of it."""
