"""Datasets and results as Delta tables, committed by delta-rs and computed on by Spark; nobody else has their files."""
