"""The language of application files: from the text to its statements, each error with its line and column.

From front to back: ``source`` cuts the text into statements and words, ``cursor`` reads these one by one, ``users``
those after FOR, and ``parser`` makes statements of them, the ``forms``. ``render`` is the way back: a definition as the
statement that makes it.
"""
