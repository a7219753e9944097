"""The demo: the emergency application on a whole local network, for a person to watch.

``city`` is a process of its own with the people, who use the client library as any program would, and the publishers.
``play`` is the order of events, ``screen`` shows them, and ``verdict`` compares in the end what was delivered with what
the data cluster had found.
"""
