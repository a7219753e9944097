"""The broker: many subscribers' connections on one side, one BE subscription for all who want the same on the other."""
