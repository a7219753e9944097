"""What a broker is expected to reach, on one core."""

from __future__ import annotations

FANOUT = {10: {"Redis": 1.0, "NATS": 3.0}, 1: {"mosquitto": 1.0, "Redis": 0.7}}
"""Deliveries per second, in multiples of a peer's, by how many an execution brings each subscriber."""
KIBIBYTES = 20.0
"""Memory of a subscriber with five subscriptions."""
LOGINS = 1000.0
"""Subscribers that log in and subscribe, per second."""
SILENCE = 0.3
"""Seconds without delivery while a subscriber moves, 99th percentile."""
OVERHEAD = 1.5
"""What moving costs, in percent of the bytes delivered."""
PUBLISHING = 0.2
"""Cores that 3,000 people take who publish once a second, on the client's side."""
LATENCY = 0.25
"""Seconds from a publication to the subscriber, median."""
