"""What a Kafka that we start is given."""

from __future__ import annotations

import re

from tocsin.local.kafka import new_cluster_id


def test_no_clusters_id_looks_like_an_option() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{21}", new_cluster_id()) for _ in range(2000))
