"""Stock quotes, and who wants which: the publications and subscriptions of the PADRES evaluation, made from a seed."""
