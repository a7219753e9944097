"""Content-based publish/subscribe without any I/O: what a subscription asks for, and whom a publication reaches.

:mod:`~tocsin.content.language` reads ``symbol = 'YHOO' and high > 40`` into a :class:`~tocsin.content.filter.Filter`,
:class:`~tocsin.content.poset.Poset` orders filters by covering, :class:`~tocsin.content.engine.Engine` finds those that
a publication matches, and :mod:`~tocsin.content.traffic` estimates what each of them costs.
"""
