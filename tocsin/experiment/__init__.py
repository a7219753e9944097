"""Experiments: the paper's evaluation repeated on the code that is shipped, each with tables, figures and a report.

``study`` says what an experiment is, ``conduct`` runs one into a ``directory``, and there is a room for each of them.
"""
