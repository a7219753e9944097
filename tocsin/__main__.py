"""``python -m tocsin``: the same as the ``tocsin`` program."""

from tocsin.cli.main import main

main()
