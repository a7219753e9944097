"""The people of the emergency application, played by as many processes as the machine needs: the load generator of the
demo and the test bed.

``process`` is what each process runs, with its share of the people, who use the client library as any program would.
``crowd`` is the side of whoever started them: orders go out, and what they count comes back added up. ``publishers``
report the emergencies. A generator must not blame the system for its own lateness: delays are measured from the
acknowledged report, and how late the generator itself was is counted apart.
"""
