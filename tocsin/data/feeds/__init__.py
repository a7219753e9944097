"""The feed log: the durable, sliced log through which publishers fill a dataset.

One process writes it (:mod:`~tocsin.data.feeds.log`), others read it by path (:mod:`~tocsin.data.feeds.reader`), and a
record's column decides its slice (:mod:`~tocsin.slices.assignment`). A position is a byte offset within one slice
that only ever grows. Nothing outside this package knows what the files look like.
"""
