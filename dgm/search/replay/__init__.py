"""Replays of a run's decisions, expansions and evaluations, compared with the record; public as ``dgm.replay``."""
