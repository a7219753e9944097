"""Application files: their statements, and the Spark SQL inside channels.

``statements`` turns the text of a file into checked statements, each with its place in the file; ``render`` writes a
definition back as the statement that makes it.
"""
