"""A channel's body compiled: from the text that somebody wrote to the one statement that serves all subscriptions.

From front to back: ``text`` has the body's tokens in their places, ``scopes`` its SELECTs, ``reading`` what its names
stand for. ``words`` refuses what can be refused by the text alone. ``rewrite`` edits the body as text: with what is
new of a dataset (``fresh``), with cells for ``near`` (on a ``grid``), and so that ``stars`` do not see what is added;
``writing`` and ``patch`` put the edits in, under names that are ``generated``. ``query`` makes one statement of it, in
the ``order`` that its author wanted. ``check`` has Spark look at it: its ``plans``, its ``meaning``, the ``functions``
it calls; a ``refusal`` has its place in the body. ``compiler`` remembers what was compiled.
"""
