"""Worlds that cost nothing, and trials of policies in them, by the same loop that performs real searches."""

PLAN = "simulation"
"""Key of a run's configuration that says which trial it records."""
