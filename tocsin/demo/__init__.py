"""The demo: the emergency application played against a running data cluster, for a person to watch.

``cast`` chooses who subscribes to what, ``play`` publishes the world and listens, ``tally`` counts, ``screen`` shows.
All of it talks to the server as any publisher and broker would.
"""
