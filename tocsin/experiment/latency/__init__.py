"""What balancing does to how long notifications take, when the crowded broker has more to do than it can."""
