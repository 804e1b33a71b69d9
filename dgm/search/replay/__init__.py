"""Does again what a run did, and compares: its decisions, its expansions, its evaluations; public as ``dgm.replay``."""
