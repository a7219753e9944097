"""Datasets and results as Delta tables: committed by delta-rs, computed on by Spark. Nobody else touches their files."""
