"""The steps that Tocsin's own planners are made of."""
