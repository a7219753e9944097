"""Where a new subscriber is placed: each policy in one file."""
