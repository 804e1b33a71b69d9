"""Batches of runs: every combination of varied settings with every random seed, each as a process of its own."""
