"""Servers to compare with, each with the few words of its protocol that a publication to many needs."""
