"""Runs held against each other: what each came to, paired differences, and the curves of their best agents."""
