"""Replay: repeat the decisions, lineages and evaluations of a run, and compare the results with its record.

No key is needed, and nothing is written into the run.
"""
