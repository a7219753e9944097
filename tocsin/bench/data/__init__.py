"""What the data cluster costs: executions, ``near``, ingestion, latency and memory."""
