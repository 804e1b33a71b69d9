"""Worlds that cost nothing, and trials of policies in them, by the same loop that performs real searches."""
