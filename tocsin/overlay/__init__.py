"""A content-based overlay that balances itself: cluster-heads route, edges serve subscribers, and no coordinator runs.

After "Dynamic Load Balancing in Distributed Content-based Publish/Subscribe" (Cheung and Jacobsen, 2006). Decisions are
pure (:mod:`~tocsin.overlay.detection`, :mod:`~tocsin.overlay.offload`); the cores take events and give actions, without
sockets and clock.
"""
