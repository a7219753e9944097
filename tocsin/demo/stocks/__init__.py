"""The demo of content-based publish/subscribe: stock alerts on a local overlay, for a person to watch.

``play`` is the order of events, ``people`` are those with alerts, ``market`` publishes quotes, ``screen`` shows it, and
``check`` knows without asking the overlay what everybody had to be told.
"""
