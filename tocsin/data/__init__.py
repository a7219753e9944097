"""The data cluster: feeds, datasets, channels and results, computed on by Spark."""
