"""Tocsin: a Big Active Data publish/subscribe platform on Spark."""

__version__ = "0.1.0"
