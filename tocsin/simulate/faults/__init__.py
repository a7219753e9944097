"""Fault schedules: everything that can break does, at random times, and then nothing may be lost, twice or astray."""
