"""Example applications: each is one SQL file, with whatever world it needs to be seen working."""
