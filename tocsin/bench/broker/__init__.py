"""Benchmarks of brokers: fan-out beside other servers, crowds, migration and the way from publisher to subscriber."""
