"""Comparisons of runs: the results of each, paired differences, and the curves of their best agents."""
