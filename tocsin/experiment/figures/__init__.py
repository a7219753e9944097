"""How figures look, the same in all experiments: ``style``, and a file for each kind of figure."""
